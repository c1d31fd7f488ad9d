// SPDX-License-Identifier: Apache-2.0
#include <map>
#include <optional>
#include <utility>

#include "base/clock.h"
#include "base/escape.h"
#include "base/fold.h"
#include "base/json.h"
#include "base/units.h"
#include "cli/command.h"
#include "cli/exit_codes.h"
#include "cli/interrupted.h"
#include "cli/log_commits.h"
#include "cli/words.h"
#include "draft/begun.h"
#include "draft/ledger.h"
#include "draft/report.h"

namespace stoplog::cli {
namespace {

constexpr OptionSpec kOptions[] = {
    {"commits"}, {"verify"}, {"json"}, {"no-pager"}, {"n", 'n', "N"}};

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
  if (kind == "cut")
    return fmt::format(
        "@{:<3} its output: {} of {}", e.integer("command"),
        print_size(static_cast<uint64_t>(e.integer("limit"))),
        print_size(static_cast<uint64_t>(e.integer("measured"))));
  std::string out;
  for (const char* key : {"mark", "name", "to", "from", "commit", "undoes",
                          "path", "reason", "message", "text", "count"}) {
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
  return fmt::format("{:>4}  {}  {:<9} {}", e.integer("n"),
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

// Entries one by one, as text or as JSON.
class Printer {
 public:
  Printer(Context& context, const Args& args)
      : out_(context.out), json_(args.has("json")) {
    if (json_)
      out_.write("{\"version\":1,\"entries\":[");
    else if (!args.has("no-pager"))
      out_.start_pager();
  }
  // False: nobody reads on.
  bool print(const Json& e) {
    if (!json_)
      out_.write((out_.terminal() ? fold(line_of(e), width_, "          ")
                                  : line_of(e)) +
                 "\n");
    else
      out_.write((std::exchange(first_, false) ? "" : ",") + e.dump());
    return !out_.dead();
  }
  void end() {
    if (json_) out_.write("]}\n");
  }

 private:
  Output& out_;
  const size_t width_ = out_.width();
  bool json_ = false, first_ = true;
};

Result<int> print_commits(Context& context, const Args& args,
                          std::vector<Json> entries,
                          std::optional<uint64_t> last) {
  if (last && entries.size() > *last)
    entries.erase(entries.begin(), entries.end() - static_cast<long>(*last));
  Printer printer(context, args);
  for (const Json& e : entries)
    if (!printer.print(e)) break;
  printer.end();
  return kDone;
}

// No draft at all: what was committed is told by the commits themselves.
Result<int> log_without_draft(Context& context, const Args& args,
                              std::optional<uint64_t> last) {
  std::vector<Json> entries = TRY(commit_entries(context));
  if (entries.empty() && !args.has("json")) {
    context.out.note("no draft here: nothing was recorded");
    context.out.hint(context.no_draft_hint());
    return kDone;
  }
  if (!entries.empty())
    context.out.note("no draft here; the workspace's commits:");
  return print_commits(context, args, std::move(entries), last);
}

Result<int> log_of(Context& context, const Args& args,
                   const draft::Draft& draft, const draft::Ledger& ledger,
                   std::optional<uint64_t> last) {
  const std::map<int64_t, Json> cuts = TRY(draft::cut_outputs(ledger, last));
  if (context.out.terminal() && !args.has("json"))
    if (uint64_t others = TRY(commits_of_others(context, draft)); others > 0)
      context.out.hint(
          fmt::format("`stoplog log --commits` shows {} of other "
                      "drafts, too",
                      plural(others, "commit")));
  Printer printer(context, args);
  TRY(ledger.for_each(
      [&](const Json& e) {
        if (e.text("kind") != "run") return printer.print(e);
        auto cut = cuts.find(e.integer("command"));
        if (cut == cuts.end() && !args.has("json")) return printer.print(e);
        Json told = e;
        if (cut != cuts.end()) draft::amend(told, cut->second);
        // A run has the fields of its report.
        return printer.print(told.set("version", 1).set("draft", draft.name));
      },
      last));
  printer.end();
  return kDone;
}

Result<int> run(Context& context, const Args& args) {
  // What is on record is shown whatever becomes of that.
  if (Status done = finish_interrupted(context); !done)
    context.out.note(escape(done.error().text()));
  std::optional<uint64_t> last;
  if (auto n = args.value("n"))
    last = TRY(parse_number(*n, "-n", 0, UINT32_MAX));
  if (args.has("commits")) {
    if (args.has("verify"))
      return fail(Code::kUsage,
                  "--verify checks a draft's record, and --commits shows none");
    return print_commits(context, args, TRY(commit_entries(context)), last);
  }
  std::optional<draft::Draft> d = TRY(draft_of_log(context));
  if (!d) return log_without_draft(context, args, last);
  const draft::Layout& layout = *TRY(context.layout());
  // A state directory that cannot be written is still read.
  if (Status noted = draft::record_lost_unless_served(layout, d->id); !noted)
    context.out.note(noted.error().text());
  draft::Ledger ledger = TRY(draft::Ledger::open(layout, d->id));
  if (args.has("verify")) return verify(context, ledger, args.has("json"));
  return log_of(context, args, *d, ledger, last);
}

}  // namespace

extern const Command k_log_command{
    .name = "log",
    .summary = "the timeline: commands, marks, decisions, commits",
    .help =
        "usage: stoplog log [-n N] [--commits|--verify] [--json] [--no-pager]\n"
        "\n"
        "The draft's record, oldest first: commands with how they ended, "
        "time,\n"
        "memory and files changed, snapshots, rollbacks, approvals, commits, "
        "undos.\n"
        "'@4' is the mark before command 4, '@4.' the one after it.\n"
        "\n"
        "  -n, --n N       the last N entries only\n"
        "      --commits   the workspace's commits and undos instead, "
        "whichever\n"
        "                  draft made them\n"
        "      --verify    check that no entry was altered or taken out;\n"
        "                  exit 3 and where, when one was\n"
        "      --json      for programs\n"
        "      --no-pager  straight to the terminal\n"
        "\n"
        "example: stoplog log --verify\n",
    .options = kOptions,
    .run = run};

}  // namespace stoplog::cli
