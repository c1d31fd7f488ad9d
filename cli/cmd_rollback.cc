// SPDX-License-Identifier: Apache-2.0
#include "base/escape.h"
#include "base/interrupt.h"
#include "base/json.h"
#include "cli/command.h"
#include "cli/marks.h"
#include "cli/opened.h"
#include "cli/wait_line.h"
#include "draft/ledger.h"

namespace stoplog::cli {
namespace {

constexpr OptionSpec kOptions[] = {{"json"}};

// Before the last command that was run.
Result<fs::Mark> last_begin(const std::vector<fs::Mark>& marks) {
  for (auto mark = marks.rbegin(); mark != marks.rend(); ++mark)
    if (mark->kind == fs::MarkKind::kCommandBegin) return *mark;
  return fail(Code::kUsage, "no command was run in this draft yet");
}

// `mount`: where the draft's view is shown.
Status ask_daemon(draft::Client& daemon, fs::Position to, std::string& mount) {
  OnInterrupt say(
      "stoplog: the draft's daemon finishes the rollback; `stoplog log` has "
      "it\n");
  auto done = daemon.rollback(to);
  if (!done && done.error().err() == EBUSY)
    return std::unexpected(
        Error(Code::kRefused, "cannot roll back while a command runs")
            .with_hint("`stoplog stop` ends it"));
  TRY(std::move(done));
  if (auto status = daemon.status()) mount = status->mount;
  return {};
}

// The daemon writes it down itself, for Ctrl-C may come before it is done.
Result<std::string> roll_back(Context& context, Opened& opened,
                              const fs::Mark& to) {
  std::string mount;
  auto in_daemon = [&](draft::Client& daemon) {
    return ask_daemon(daemon, to.position, mount);
  };
  auto in_tree = [&](fs::Tree& tree) -> Status {
    TRY(check_interrupt());
    TRY(tree.rollback(to.position));
    draft::Ledger ledger =
        TRY(draft::Ledger::open(*TRY(context.layout()), opened.draft.id));
    TRY(ledger.append(
        "rollback",
        Json::object().set("to", mark_name(to)).set("position", to.position),
        Sync::kNo));
    return {};
  };
  TRY(change_draft(context, opened, {.daemon = in_daemon, .tree = in_tree}));
  return mount;
}

// Commands end with a mark; what is written in a mounted view, or was by a
// command whose daemon died, is led back to by none.
Result<std::optional<std::string>> keep_unmarked(Context& context,
                                                 Opened& opened) {
  if (opened.view) return std::nullopt;  // damaged: nothing can be written
  if (opened.daemon && TRY(opened.daemon->status()).mount.empty())
    return std::nullopt;
  fs::Timeline now = TRY(fs::read_timeline(opened.draft_dir.get()));
  if (now.damaged || !now.unmarked) return std::nullopt;
  std::string name = free_name(opened.marks, "before-");
  TRY(take_mark(context, opened, name));
  return name;
}

Result<int> run(Context& context, const Args& args) {
  draft::Draft draft = TRY(context.need_draft());
  WaitLine line("rolling back");
  draft::DraftTurn turn = TRY(take_turn(context, draft));
  Opened opened =
      TRY(open_draft(context, draft, {.has_turn = true, .only_marks = true}));
  const std::vector<fs::Mark>& marks = opened.marks;
  fs::Mark to = args.positionals.empty()
                    ? TRY(last_begin(marks))
                    : TRY(find_mark(marks, args.positionals[0]));
  auto kept = TRY(keep_unmarked(context, opened));
  std::string mount = TRY(roll_back(context, opened, to));
  line.clear();
  if (kept)
    context.out.note(fmt::format(
        "what was changed since the last mark is kept as '{}'", *kept));
  if (!mount.empty())
    context.out.note(fmt::format(
        "the view at '{}' changed: programs that have files open there may "
        "write them again as they were",
        escape(mount)));
  if (args.has("json")) {
    Json j = Json::object();
    j.set("version", 1).set("to", mark_name(to));
    j.set("kept", kept ? Json(*kept) : Json());
    context.out.write(j.dump() + "\n");
    return 0;
  }
  context.out.write(fmt::format("rolled back to {}\n", escape(mark_name(to))));
  context.out.hint("nothing is lost: every mark stays, `stoplog log` has them");
  return 0;
}

}  // namespace

extern const Command k_rollback_command{
    .name = "rollback",
    .summary = "go back to a mark",
    .help =
        "usage: stoplog rollback [MARK] [--json]\n"
        "\n"
        "Makes the draft what it was at MARK: @4 is before command 4, @4. "
        "after\n"
        "it, or a snapshot's name (default: before the last command). Does "
        "not\n"
        "ask, for nothing is lost: later marks stay valid. The real tree is "
        "not\n"
        "touched.\n"
        "\n"
        "      --json  for programs\n"
        "\n"
        "example: stoplog rollback @3\n",
    .options = kOptions,
    .max = 1,
    .run = run};

}  // namespace stoplog::cli
