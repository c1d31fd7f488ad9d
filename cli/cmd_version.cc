// SPDX-License-Identifier: Apache-2.0
#include "cli/command.h"

namespace stoplog::cli {
namespace {

constexpr OptionSpec kOptions[] = {{"json"}};

Result<int> run(Context& context, const Args& args) {
  if (args.has("json"))
    context.out.write("{\"version\":1,\"stoplog\":\"" STOPLOG_VERSION "\"}\n");
  else
    context.out.write("stoplog " STOPLOG_VERSION "\n");
  return 0;
}

}  // namespace

extern const Command k_version_command{.name = "version",
                                       .summary = "print the version",
                                       .help =
                                           "usage: stoplog version [--json]\n"
                                           "\n"
                                           "Prints the program's version.\n"
                                           "\n"
                                           "      --json  for programs\n"
                                           "\n"
                                           "example: stoplog version\n",
                                       .options = kOptions,
                                       .run = run};

}  // namespace stoplog::cli
