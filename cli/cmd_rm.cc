// SPDX-License-Identifier: Apache-2.0
#include "cli/change_count.h"
#include "cli/command.h"

namespace stoplog::cli {
namespace {

constexpr OptionSpec kOptions[] = {{"yes", 'y'}};

Status confirm(Context& context, const draft::Draft& d, bool yes) {
  if (yes || d.state != draft::DraftState::kOpen) return {};
  std::optional<uint64_t> changes = count_changes(context, d);
  if (changes && *changes == 0) return {};
  std::string what = changes ? fmt::format("{} held change{}", *changes,
                                           *changes == 1 ? "" : "s")
                             : std::string("held work that cannot be read");
  if (!can_ask())
    return std::unexpected(
        Error(Code::kDeclined,
              fmt::format("cannot remove '{}': it has {}", d.name, what))
            .with_hint("say -y to remove it without being asked"));
  if (!ask_yes(
          fmt::format("draft '{}' has {}; remove it for good?", d.name, what)))
    return fail(Code::kDeclined, "'{}' stays", d.name);
  return {};
}

Result<int> run(Context& context, const Args& args) {
  draft::Store& store = *TRY(context.store());
  draft::Draft d =
      TRY(store.find(*TRY(context.workspace()), args.positionals[0]));
  TRY(confirm(context, d, args.has("yes")));
  draft::DraftTurn turn =
      TRY(draft::DraftTurn::take(*TRY(context.layout()), d.id));
  if (auto client = TRY(context.daemon(d, draft::OtherVersion::kEnds)))
    TRY_CTX(client->shutdown(*TRY(context.layout()), d.id, true),
            "cannot end the draft's daemon");
  TRY(store.remove(d.id));
  context.out.note(fmt::format("removed draft '{}'", d.name));
  return 0;
}

}  // namespace

extern const Command k_rm_command{
    .name = "rm",
    .summary = "remove a draft and what it holds",
    .help =
        "usage: stoplog rm DRAFT [-y]\n"
        "\n"
        "Removes DRAFT for good: its held changes, timeline and record. Asks\n"
        "while work is in it that was not committed; without a terminal and\n"
        "without -y it removes nothing. What was committed stays, and can\n"
        "still be undone.\n"
        "\n"
        "  -y, --yes   do not ask\n"
        "\n"
        "example: stoplog rm calm-heron\n",
    .options = kOptions,
    .min = 1,
    .max = 1,
    .run = run};

}  // namespace stoplog::cli
