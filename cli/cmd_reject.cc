// SPDX-License-Identifier: Apache-2.0
#include "base/escape.h"
#include "base/json_path.h"
#include "base/shown_path.h"
#include "cli/command.h"
#include "cli/decisions.h"
#include "cli/opened.h"
#include "cli/rejection_notes.h"
#include "cli/who.h"
#include "cli/words.h"
#include "draft/ledger.h"

namespace stoplog::cli {
namespace {

constexpr OptionSpec kOptions[] = {{"reason", 0, "TEXT"}, {"json"}};

Result<int> run(Context& context, const Args& args) {
  draft::Draft draft = TRY(context.need_draft());
  gate::RejectRequest request;
  request.paths = TRY(context.paths(args.positionals));
  request.reason = args.value("reason").value_or("");
  Opened opened = TRY(open_draft(context, draft, {}));
  diff::ChangeSet set = TRY(changes_of(opened, TRY(load_policy(context))));
  request.by = signature(set);
  std::vector<RelPath> rejected;
  TRY(change_plan(opened, [&](gate::Plan& plan) -> Status {
    rejected = TRY(with_list_hint(gate::reject(plan, set, request)));
    return {};
  }));
  TRY(tell_rejections(context, opened));
  draft::Ledger ledger =
      TRY(draft::Ledger::open(*TRY(context.layout()), draft.id));
  Json fields = who_fields();
  fields.set("digest", digest_text(set)).set("reason", request.reason);
  set_paths(fields, "paths", rejected);
  TRY(ledger.append("reject", fields, Sync::kYes));
  if (args.has("json")) {
    Json j = Json::object();
    j.set("version", 1).set("digest", digest_text(set));
    context.out.write(set_paths(j, "rejected", rejected).dump() + "\n");
    return 0;
  }
  context.out.write(
      fmt::format("rejected {}:\n", plural(rejected.size(), "change")));
  for (const RelPath& path : rejected)
    context.out.write(fmt::format("  {}\n", escape(shown_path(path))));
  context.out.hint(
      "the agent finds it in /run/stoplog/rejections; `stoplog discard PATH` "
      "drops the change");
  return 0;
}

}  // namespace

extern const Command k_reject_command{
    .name = "reject",
    .summary = "reject changes, with a reason that the agent can read",
    .help =
        "usage: stoplog reject PATH... [--reason TEXT] [--json]\n"
        "\n"
        "Records that you reject the changes at PATH as they are now. They "
        "stay\n"
        "held and are never committed; the agent finds your words inside the\n"
        "jail in /run/stoplog/rejections. `stoplog discard` drops a change.\n"
        "\n"
        "      --reason TEXT  why\n"
        "      --json         for programs\n"
        "\n"
        "example: stoplog reject src/db.c --reason \"keep the old schema\"\n",
    .options = kOptions,
    .min = 1,
    .max = kAnyNumber,
    .run = run};

}  // namespace stoplog::cli
