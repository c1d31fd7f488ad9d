// SPDX-License-Identifier: Apache-2.0
#include "cli/run_summary.h"

#include <fcntl.h>
#include <string.h>

#include <algorithm>

#include "base/escape.h"
#include "base/sys_file.h"
#include "base/sys_node.h"
#include "base/units.h"
#include "cli/commit_flow.h"
#include "cli/opened.h"
#include "diff/render.h"

namespace stoplog::cli {
namespace {

std::string amount(const std::string& limit, uint64_t value) {
  if (limit == "time" || limit == "cpu")
    return print_duration(Millis(static_cast<int64_t>(value)));
  return print_size(value);
}

// The command saw ENOSPC, and perhaps did not say so.
void tell_full_disk(Context& context) {
  constexpr uint64_t kLeast = 1 << 20;
  auto layout = context.layout();
  if (!layout) return;
  const std::string place = (*layout)->drafts();
  auto dir = sys::openat(AT_FDCWD, place, O_RDONLY | O_DIRECTORY);
  if (!dir) return;
  auto room = sys::fstatvfs(dir->get());
  if (!room || uint64_t{room->f_bavail} * room->f_frsize >= kLeast) return;
  context.out.note(fmt::format(
      "no room is left at '{}', where what is written is held", escape(place)));
  context.out.hint(
      "`stoplog gc` frees what no draft needs, `stoplog rm` a draft");
}

void next_steps(Context& context, const diff::ChangeSet& set) {
  if (set.empty()) return;
  context.out.note("next: `stoplog review`, or `diff`, `commit -a`, `discard`");
}

}  // namespace

std::string ending_text(const draft::Outcome& outcome,
                        const draft::Limits& limits) {
  std::string text;
  if (outcome.killed_by == "supervisor")
    text = outcome.lost.empty() ? "stopped" : "ended by stoplog";
  else if (!outcome.killed_by.empty())
    text =
        fmt::format("ended by its {} limit of {} (measured {})",
                    outcome.killed_by, amount(outcome.killed_by, outcome.limit),
                    amount(outcome.killed_by, outcome.measured));
  else if (outcome.signal != 0)
    text = fmt::format("killed by signal {} ({})", outcome.signal,
                       ::sigabbrev_np(outcome.signal) != nullptr
                           ? ::sigabbrev_np(outcome.signal)
                           : "?");
  else
    text = fmt::format("exit {}", outcome.exit);
  if (!outcome.lost.empty())
    text += fmt::format(
        ": no room was left for what it had stored through a mapping of '{}', "
        "which is lost",
        escape(outcome.lost));
  text +=
      fmt::format(", {}, {} of memory",
                  print_duration(Millis(static_cast<int64_t>(outcome.wall_ms))),
                  print_size(outcome.memory_peak));
  auto refused = [&](const char* what, uint64_t count) {
    if (count == 1)
      text += fmt::format(", {} refused once", what);
    else if (count != 0)
      text += fmt::format(", {} refused {} times", what, count);
  };
  refused("disk space", outcome.refused_disk);
  refused("new files", outcome.refused_inodes);
  refused("new processes", outcome.refused_pids);
  // RLIMIT_NPROC refuses without a word: that it may have done so can be told.
  const auto& pids = limits.pids.value;
  if (pids && outcome.pids_peak >= *pids &&
      std::ranges::find(outcome.held, std::pair<std::string, std::string>(
                                          "pids", "rlimit")) !=
          outcome.held.end())
    text += fmt::format(
        ", its limit of {} reached",
        *pids == 1 ? "one process" : fmt::format("{} processes", *pids));
  return text;
}

Result<Json> after_run(Context& context, draft::Client& client,
                       const AfterRun& after) {
  // Looked at again: who took `auto` back meanwhile meant this command, too.
  if (after.automatic && TRY(load_policy(context)).gate_mode.value == "auto")
    TRY(commit_standing(context, after.draft));
  // Nobody asked: a harness pays for every millisecond.
  if (after.quiet && !after.report) return Json();
  // First: what follows may fail, on a full disk for one.
  if (!after.quiet)
    context.out.note(fmt::format(
        "command {} of draft {}: {}", after.command, escape(after.draft.name),
        ending_text(after.outcome, after.request.limits)));
  if (!after.quiet) tell_full_disk(context);
  diff::ChangeSet set;
  if (after.outcome.touched_nodes != 0) {
    Opened opened =
        TRY(open_draft(context, after.draft, {.at = {}, .client = &client}));
    set = TRY(changes_of(opened, TRY(load_policy(context)),
                         {.digest = false, .count_lines = !after.quiet}));
  }
  if (!after.quiet) {
    std::string text;
    diff::render_summary(set,
                         {.terminal = after.terminal,
                          .color = context.out.error_color(),
                          .width = context.out.width()},
                         [&](std::string_view piece) { text += piece; });
    context.out.say(text);
    if (after.terminal) next_steps(context, set);
  }
  // Its own: the draft may hold what others changed before it.
  return Json(static_cast<uint64_t>(
      std::ranges::count(set.changes, after.command, &diff::Change::command)));
}

}  // namespace stoplog::cli
