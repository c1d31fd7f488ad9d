// SPDX-License-Identifier: Apache-2.0
#include "cli/command.h"

namespace stoplog::cli {
namespace {

// The order in which a new user meets them, two to a line: all of it fits a
// screen of 24 lines.
struct Brief {
  std::string_view name, text;
};
struct Section {
  std::string_view title;
  std::vector<Brief> commands;
};

const std::vector<Section>& sections() {
  static const std::vector<Section> kSections = {
      {"work",
       {{"run", "a command in the jail"},
        {"mount", "the view, for editors"},
        {"ps", "what runs now"},
        {"unmount", "take that away"},
        {"stop", "end what runs"}}},
      {"look",
       {{"status", "what is held"},
        {"diff", "the patch"},
        {"log", "the timeline"},
        {"show", "what a commit did"},
        {"cat", "a file of the draft"}}},
      {"decide",
       {{"review", "on a full screen"},
        {"approve", "changes as they are"},
        {"reject", "with a reason"},
        {"commit", "apply what is approved"},
        {"undo", "take a commit back"},
        {"discard", "drop held changes"}}},
      {"time",
       {{"snapshot", "name this state"},
        {"rollback", "go back to a mark"},
        {"fork", "a second draft"}}},
      {"drafts",
       {{"drafts", "list them"},
        {"switch", "make one current"},
        {"rm", "remove one"},
        {"gc", "reclaim space"},
        {"export", "as a file, or a patch"},
        {"import", "what export wrote"}}},
      {"setup",
       {{"policy", "show, explain, begin"},
        {"doctor", "what is held here, and how"},
        {"completion", "for bash, zsh, fish"},
        {"version", "print it"},
        {"help", "of a command"}}}};
  return kSections;
}

Result<int> run(Context& context, const Args& args) {
  if (args.positionals.empty()) {
    context.out.write(overview());
    return 0;
  }
  const Command* command = find_command(args.positionals[0]);
  if (command == nullptr)
    return std::unexpected(unknown_command(args.positionals[0]));
  context.out.write(command->help);
  return 0;
}

}  // namespace

std::string overview() {
  std::string out =
      "stoplog holds a coding agent's work back until you approve it.\n"
      "usage: stoplog [-C DIR] [--workspace DIR] [-d DRAFT] [--color WHEN] "
      "COMMAND ...\n\n";
  for (const Section& section : sections()) {
    std::string_view title = section.title;
    for (size_t i = 0; i < section.commands.size(); i += 2) {
      const Brief& left = section.commands[i];
      std::string line =
          fmt::format("{:<7} {:<10} {:<22}", title, left.name, left.text);
      if (i + 1 < section.commands.size())
        line += fmt::format("  {:<8} {}", section.commands[i + 1].name,
                            section.commands[i + 1].text);
      out += line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
      title = "";
    }
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
