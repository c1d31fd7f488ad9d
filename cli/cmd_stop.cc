// SPDX-License-Identifier: Apache-2.0
#include "cli/command.h"

namespace stoplog::cli {
namespace {

Result<int> run(Context& context, const Args& args) {
  uint32_t number = 0;
  if (!args.positionals.empty())
    number = static_cast<uint32_t>(
        TRY(parse_number(args.positionals[0], "N", 1, UINT32_MAX)));
  draft::Draft d = TRY(context.need_draft());
  auto found = context.daemon(d);
  if (!found && found.error().code() == Code::kUnsupported && number == 0) {
    TRY(context.daemon(d, draft::OtherVersion::kEnds));
    context.out.note("ended what another version of stoplog ran");
    return 0;
  }
  std::optional<draft::Client> client = TRY(std::move(found));
  size_t running = client ? TRY(client->running()).size() : 0;
  if (running == 0) {
    context.out.note("nothing runs");
    return 0;
  }
  auto stopped = client->stop(number);
  if (!stopped && stopped.error().err() == ESRCH)
    return std::unexpected(
        Error(Code::kUsage, fmt::format("command {} does not run", number))
            .with_hint("`stoplog ps` lists what does"));
  TRY(std::move(stopped));
  context.out.note(number != 0 ? fmt::format("ended command {}", number)
                               : fmt::format("ended {} command{}", running,
                                             running == 1 ? "" : "s"));
  return 0;
}

}  // namespace

extern const Command k_stop_command{
    .name = "stop",
    .summary = "end what runs in the draft",
    .help =
        "usage: stoplog stop [N]\n"
        "\n"
        "Ends command N of the draft with everything it started, or all that\n"
        "run. What they changed stays held.\n"
        "\n"
        "example: stoplog stop 4\n",
    .max = 1,
    .run = run};

}  // namespace stoplog::cli
