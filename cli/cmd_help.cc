// SPDX-License-Identifier: Apache-2.0
#include "base/escape.h"
#include "cli/command.h"

namespace stoplog::cli {
namespace {

// The order in which a new user meets them.
struct Section {
  std::string_view title;
  std::vector<std::string_view> commands;
};

const std::vector<Section>& sections() {
  static const std::vector<Section> kSections = {
      {"work", {"run", "mount", "unmount", "ps", "stop"}},
      {"look", {"status", "diff", "log", "show", "cat"}},
      {"decide", {"review", "approve", "reject", "commit", "undo", "discard"}},
      {"time", {"snapshot", "rollback", "fork"}},
      {"drafts", {"drafts", "switch", "rm", "gc", "export", "import"}},
      {"setup", {"policy", "doctor", "completion", "help", "version"}}};
  return kSections;
}

Result<int> run(Context& context, const Args& args) {
  if (args.positionals.empty()) {
    context.out.write(overview());
    return 0;
  }
  const Command* command = find_command(args.positionals[0]);
  if (command == nullptr)
    return std::unexpected(
        Error(Code::kUsage,
              fmt::format("unknown command '{}'", escape(args.positionals[0])))
            .with_hint("`stoplog help` lists them"));
  context.out.write(command->help);
  return 0;
}

}  // namespace

std::string overview() {
  std::string out =
      "stoplog holds a coding agent's work back until you approve it.\n"
      "\n"
      "usage: stoplog [-C DIR] [--workspace DIR] [-d DRAFT] [--color WHEN]\n"
      "               COMMAND [OPTIONS] [ARGS]\n";
  for (const Section& section : sections()) {
    std::string lines;
    for (std::string_view name : section.commands) {
      const Command* command = find_command(name);
      if (command == nullptr) continue;
      lines += fmt::format("  {:<11} {}\n", name, command->summary);
    }
    if (!lines.empty()) out += fmt::format("\n{}\n{}", section.title, lines);
  }
  out +=
      "\nexample: stoplog run -- make test, then stoplog review\n"
      "`stoplog COMMAND --help` says more about one of them.\n";
  return out;
}

extern const Command k_help_command{
    .name = "help",
    .summary = "this overview, or one command's help",
    .help =
        "usage: stoplog help [COMMAND]\n"
        "\n"
        "Prints the overview, or the help of COMMAND.\n"
        "\n"
        "example: stoplog help run\n",
    .max = 1,
    .run = run};

}  // namespace stoplog::cli
