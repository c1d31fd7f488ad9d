// SPDX-License-Identifier: Apache-2.0
#include "cli/command.h"

namespace stoplog::cli {
namespace {

Result<int> run(Context& context, const Args& args) {
  draft::Store& store = *TRY(context.store());
  draft::Draft d =
      TRY(store.find(*TRY(context.workspace()), args.positionals[0]));
  if (d.workspace != TRY(context.workspace())->path)
    return fail(Code::kUsage,
                "cannot switch to '{}': it is a draft over another workspace",
                d.name);
  if (d.state != draft::DraftState::kOpen)
    return fail(Code::kUsage, "cannot switch to '{}': it is {}", d.name,
                draft::name_of(d.state));
  TRY(store.select(d.id));
  context.out.note(fmt::format("the current draft is '{}'", d.name));
  return 0;
}

}  // namespace

extern const Command k_switch_command{
    .name = "switch",
    .summary = "make another draft the current one",
    .help =
        "usage: stoplog switch DRAFT\n"
        "\n"
        "Makes DRAFT (a name, or an id) the workspace's current draft: the\n"
        "one that commands work on when no -d says otherwise. What runs in\n"
        "the other draft goes on.\n"
        "\n"
        "example: stoplog switch calm-heron\n",
    .min = 1,
    .max = 1,
    .run = run};

}  // namespace stoplog::cli
