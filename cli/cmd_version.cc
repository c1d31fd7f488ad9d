// SPDX-License-Identifier: Apache-2.0
#include "cli/command.h"

namespace stoplog::cli {
namespace {

Result<int> run(Context& context, const Args&) {
  context.out.write("stoplog " STOPLOG_VERSION "\n");
  return 0;
}

}  // namespace

extern const Command k_version_command{.name = "version",
                                       .summary = "print the version",
                                       .help =
                                           "usage: stoplog version\n"
                                           "\n"
                                           "Prints the program's version.\n"
                                           "\n"
                                           "example: stoplog version\n",
                                       .run = run};

}  // namespace stoplog::cli
