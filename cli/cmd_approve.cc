// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include "base/escape.h"
#include "base/json_path.h"
#include "base/shown_path.h"

#include "cli/command.h"
#include "cli/decisions.h"
#include "cli/exit_codes.h"
#include "cli/opened.h"
#include "cli/review_flow.h"
#include "cli/who.h"
#include "cli/words.h"
#include "draft/ledger.h"

namespace stoplog::cli {
namespace {

constexpr OptionSpec kOptions[] = {
    {"all", 'a'}, {"danger"}, {"patch", 'p'}, {"digest", 0, "D"}, {"json"}};

Status record(Context& context, const Opened& opened,
              const diff::ChangeSet& set, const Args& args,
              const gate::ApproveReport& report) {
  draft::Ledger ledger =
      TRY(draft::Ledger::open(*TRY(context.layout()), opened.draft.id));
  Json fields = who_fields();
  fields.set("digest", digest_text(set)).set("danger", args.has("danger"));
  set_paths(fields, "paths", report.approved);
  TRY(ledger.append("approve", fields, Sync::kYes));
  return {};
}

void tell(Context& context, const gate::ApproveReport& report) {
  auto list = [&](const std::vector<RelPath>& paths) {
    for (const RelPath& path : paths)
      context.out.write(fmt::format("  {}\n", escape(shown_path(path))));
  };
  if (!report.approved.empty()) {
    context.out.write(fmt::format("approved {}:\n",
                                  plural(report.approved.size(), "change")));
    list(report.approved);
  }
  if (!report.dangers.empty()) {
    context.out.write(fmt::format("not approved, a danger each:\n"));
    list(report.dangers);
    context.out.hint(
        "name the file itself, or say --danger, after a look at "
        "`stoplog diff`");
  }
  if (!report.rejected.empty()) {
    context.out.write("not approved, rejected before:\n");
    list(report.rejected);
    context.out.hint("name the file itself to approve it all the same");
  }
  if (!report.ignored.empty())
    context.out.note(fmt::format(
        "{} that git ignores {} held", plural(report.ignored.size(), "file"),
        report.ignored.size() == 1 ? "stays" : "stay"));
  if (report.approved.empty() && report.dangers.empty() &&
      report.rejected.empty())
    context.out.note("nothing to approve");
  else if (!report.approved.empty())
    context.out.hint("`stoplog commit` applies what is approved");
}

// The path of the top means all beneath it, and so names no danger there.
Result<gate::ApproveReport> approve_in(gate::Plan& plan,
                                       const diff::ChangeSet& set,
                                       const gate::ApproveRequest& request) {
  const diff::Change* top = set.find(RelPath());
  if (top == nullptr || !top->is_danger() || request.danger ||
      std::ranges::find(request.paths, RelPath()) == request.paths.end())
    return gate::approve(plan, set, request);
  diff::ChangeSet rest = set;
  std::erase_if(rest.changes, [](const diff::Change& change) {
    return change.path.is_root();
  });
  gate::ApproveRequest all = request;
  if (rest.changes.empty()) all.paths.clear();
  gate::ApproveReport report = TRY(gate::approve(plan, rest, all));
  report.dangers.push_back(RelPath());
  return report;
}

Result<int> run(Context& context, const Args& args) {
  draft::Draft draft = TRY(context.need_draft());
  gate::ApproveRequest request;
  request.paths = TRY(context.paths(args.positionals));
  request.all = args.has("all");
  request.danger = args.has("danger");
  request.digest = args.value("digest");
  // What was rejected is approved by its name alone.
  request.keep_rejected = request.renew = true;
  if (request.paths.empty() && !request.all && !args.has("patch") &&
      !request.digest)
    return std::unexpected(
        Error(Code::kUsage, "nothing to approve is named")
            .with_hint("name PATHs, or say --all; -p asks hunk by hunk"));
  if (args.has("patch")) {
    if (request.all || request.danger || request.digest || args.has("json"))
      return fail(Code::kUsage,
                  "-p asks about each hunk: it goes with PATHs alone");
    return approve_by_hunk(context, draft, request.paths);
  }
  // A digest alone stands for all that it covers.
  if (request.paths.empty() && request.digest) request.all = true;
  Opened opened = TRY(open_draft(context, draft, {}));
  draft::Policy policy = TRY(load_policy(context));
  diff::ChangeSet set = TRY(changes_of(opened, policy));
  request.include_ignored = policy.ignored.value == "commit";
  request.by = signature(set);
  gate::ApproveReport report;
  std::vector<RelPath> gone;
  TRY(change_plan(opened, [&](gate::Plan& plan) -> Status {
    gone = gate::drop_gone(plan, set);
    std::erase_if(request.paths, [&](const RelPath& path) {
      return std::ranges::find(gone, path) != gone.end();
    });
    report = TRY(with_list_hint(approve_in(plan, set, request)));
    return {};
  }));
  for (const RelPath& path : gone)
    context.out.note(
        fmt::format("{} is no change any more: its approval is "
                    "dropped",
                    quote_name(path.str())));
  if (!report.approved.empty()) TRY(record(context, opened, set, args, report));
  if (args.has("json")) {
    Json j = Json::object();
    j.set("version", 1).set("digest", digest_text(set));
    set_paths(j, "approved", report.approved);
    set_paths(j, "dangers", report.dangers);
    set_paths(j, "rejected", report.rejected);
    set_paths(j, "ignored", report.ignored);
    context.out.write(j.dump() + "\n");
  } else {
    tell(context, report);
  }
  bool only_dangers = report.approved.empty() && !report.dangers.empty();
  return only_dangers ? kRefusedHere : kDone;
}

}  // namespace

extern const Command k_approve_command{
    .name = "approve",
    .summary = "approve changes as they are now",
    .help =
        "usage: stoplog approve [PATH...] [-p] [--all] [--danger] [--digest "
        "D]\n"
        "\n"
        "Records that you approve the changes at PATH (a directory: all "
        "beneath\n"
        "it) as they are now; a later edit makes the approval stale. Nothing "
        "is\n"
        "written to the real tree before `stoplog commit`.\n"
        "\n"
        "A danger is approved only by a PATH that names that very file, or "
        "with\n"
        "--danger: --all and directories skip dangers and say so (exit 4 when\n"
        "nothing else was there).\n"
        "\n"
        "  -p, --patch     ask about each hunk, with the keys of git add -p\n"
        "  -a, --all       all but dangers, what was rejected and what git "
        "ignores\n"
        "      --danger    dangers too\n"
        "      --digest D  only when the change set is still D, as `stoplog\n"
        "                  status --json` gave it; else exit 3\n"
        "      --json      for programs\n"
        "\n"
        "example: stoplog approve src/ Makefile\n",
    .options = kOptions,
    .max = kAnyNumber,
    .run = run};

}  // namespace stoplog::cli
