// SPDX-License-Identifier: Apache-2.0
#include <optional>
#include <utility>

#include "base/clock.h"
#include "base/escape.h"
#include "base/json.h"
#include "base/units.h"
#include "cli/command.h"
#include "cli/exit_codes.h"
#include "cli/interrupted.h"
#include "cli/words.h"
#include "draft/begun.h"
#include "draft/ledger.h"

namespace stoplog::cli {
namespace {

constexpr OptionSpec kOptions[] = {
    {"verify"}, {"json"}, {"no-pager"}, {"n", 'n', "N"}};

std::vector<std::string> strings(const Json& list) {
  std::vector<std::string> out;
  for (const Json& item : list.items()) out.push_back(item.string());
  return out;
}

std::string how_it_ended(const Json& e) {
  // What it stored there through a mapping found no room.
  const std::string lost =
      e["lost"].is_string() ? ", lost " + escape(e.text("lost")) : "";
  // A run that has no end of its own: its daemon was killed.
  if (!e["killed_by"].is_null() && e["mark_after"].is_null())
    return "lost: " + escape(e.text("failure"));
  if (!e["killed_by"].is_null())
    return fmt::format("killed: {}{}", e.text("killed_by"), lost);
  if (!e["signal"].is_null())
    return fmt::format("signal {}{}", e.integer("signal"), lost);
  return fmt::format("exit {}{}", e.integer("exit"), lost);
}

std::string describe_run(const Json& e) {
  std::string out = fmt::format("@{:<3} {}  [{}", e.integer("command"),
                                show_argv(strings(e["argv"])), how_it_ended(e));
  if (!e["wall_ms"].is_null())
    out += ", " + print_duration(Millis(e.integer("wall_ms")));
  if (e.integer("memory_peak") > 0)
    out += ", " + print_size(static_cast<uint64_t>(e.integer("memory_peak")));
  if (e.integer("cpu_ms") > 0)
    out += ", cpu " + print_duration(Millis(e.integer("cpu_ms")));
  if (!e["changed"].is_null())
    out += ", " + plural(static_cast<uint64_t>(e.integer("changed")), "file") +
           " changed";
  return out + "]";
}

std::string describe(const Json& e) {
  std::string kind = e.text("kind");
  if (kind == "run") return describe_run(e);
  std::string out;
  for (const char* key : {"mark", "name", "to", "from", "commit", "path",
                          "reason", "message", "text", "count"}) {
    const Json& value = e[key];
    if (value.is_string() && !value.string().empty())
      out += (out.empty() ? "" : "  ") + escape(value.string());
    else if (value.is_number())
      out += fmt::format("{}{} {}", out.empty() ? "" : "  ", key,
                         value.as_integer());
  }
  if (e["paths"].is_array()) {
    size_t n = e["paths"].items().size();
    out += fmt::format("{}{}", out.empty() ? "" : "  ", plural(n, "path"));
    if (n <= 3)
      for (const Json& path : e["paths"].items())
        out += " " + escape(path.string());
  }
  return out;
}

std::string line_of(const Json& e) {
  auto time = parse_rfc3339(e.text("time"));
  return fmt::format("{:>4}  {}  {:<9} {}\n", e.integer("n"),
                     time ? local_time(*time) : escape(e.text("time")),
                     escape(e.text("kind")), describe(e));
}

Result<int> verify(Context& context, const draft::Ledger& ledger, bool json) {
  draft::Ledger::Verdict verdict = TRY(ledger.verify());
  if (json) {
    Json j = Json::object();
    j.set("version", 1).set("ok", verdict.ok).set("entries", verdict.entries);
    j.set("lost", verdict.lost);
    j.set("problem", verdict.ok ? Json() : Json(verdict.problem));
    j.set("note", verdict.note.empty() ? Json() : Json(verdict.note));
    context.out.write(j.dump() + "\n");
    return verdict.ok ? kDone : kStale;
  }
  if (!verdict.note.empty()) context.out.note(verdict.note);
  if (!verdict.ok)
    return fail(Code::kDrift, "the record is damaged: {}", verdict.problem);
  context.out.write(fmt::format(
      "{}: each follows the one before it\n",
      verdict.entries == 1 ? std::string("1 entry")
                           : fmt::format("{} entries", verdict.entries)));
  return kDone;
}

// After a whole commit no draft is current; its record is still wanted.
Result<std::optional<draft::Draft>> draft_of_log(Context& context) {
  auto current = TRY(context.find_draft());
  if (current) return current;
  std::optional<draft::Draft> last;
  for (draft::Draft& d :
       TRY(TRY(context.store())->list(*TRY(context.workspace()))))
    if (!last || d.selected_ns >= last->selected_ns) last = std::move(d);
  return last;
}

Result<int> run(Context& context, const Args& args) {
  // What is on record is shown whatever becomes of that.
  if (Status done = finish_interrupted(context); !done)
    context.out.note(escape(done.error().text()));
  std::optional<draft::Draft> d = TRY(draft_of_log(context));
  bool json = args.has("json");
  if (!d) {
    if (json) context.out.write("{\"version\":1,\"entries\":[]}\n");
    if (!json) {
      context.out.note("no draft here: nothing was recorded");
      context.out.hint(context.no_draft_hint());
    }
    return kDone;
  }
  const draft::Layout& layout = *TRY(context.layout());
  // A state directory that cannot be written is still read.
  if (Status noted = draft::record_lost_unless_served(layout, d->id); !noted)
    context.out.note(noted.error().text());
  draft::Ledger ledger = TRY(draft::Ledger::open(layout, d->id));
  if (args.has("verify")) return verify(context, ledger, json);
  std::optional<uint64_t> last;
  if (auto n = args.value("n"))
    last = TRY(parse_number(*n, "-n", 0, UINT32_MAX));
  if (json) {
    context.out.write("{\"version\":1,\"entries\":[");
    bool first = true;
    TRY(ledger.for_each(
        [&](Json e) {
          // A run has the fields of its report.
          if (e.text("kind") == "run")
            e.set("version", 1).set("draft", d->name);
          context.out.write((std::exchange(first, false) ? "" : ",") +
                            e.dump());
          return !context.out.dead();
        },
        last));
    context.out.write("]}\n");
    return kDone;
  }
  if (!args.has("no-pager")) context.out.start_pager();
  TRY(ledger.for_each(
      [&](const Json& e) {
        context.out.write(line_of(e));
        return !context.out.dead();
      },
      last));
  return kDone;
}

}  // namespace

extern const Command k_log_command{
    .name = "log",
    .summary = "the timeline: commands, marks, decisions, commits",
    .help =
        "usage: stoplog log [-n N] [--verify] [--json] [--no-pager]\n"
        "\n"
        "The draft's record, oldest first: commands with how they ended, "
        "time,\n"
        "memory and files changed, snapshots, rollbacks, approvals, commits, "
        "undos.\n"
        "'@4' is the mark before command 4, '@4.' the one after it.\n"
        "\n"
        "  -n, --n N       the last N entries only\n"
        "      --verify    check that no entry was altered or taken out;\n"
        "                  exit 3 and where, when one was\n"
        "      --json      for programs\n"
        "      --no-pager  straight to the terminal\n"
        "\n"
        "example: stoplog log --verify\n",
    .options = kOptions,
    .run = run};

}  // namespace stoplog::cli
