// SPDX-License-Identifier: Apache-2.0
#include "base/escape.h"
#include "cli/command.h"

namespace stoplog::cli {
namespace {

struct Script {
  std::string_view shell;
  std::string_view text;
};
constexpr Script kScripts[] = {
#include "completions.inc"
};

Result<int> run(Context& context, const Args& args) {
  for (const Script& script : kScripts) {
    if (script.shell != args.positionals[0]) continue;
    context.out.write(script.text);
    return 0;
  }
  return std::unexpected(
      Error(Code::kUsage, fmt::format("no completion for the shell '{}'",
                                      escape(args.positionals[0])))
          .with_hint("there are: bash, zsh, fish"));
}

}  // namespace

extern const Command k_completion_command{
    .name = "completion",
    .summary = "print the completion of bash, zsh or fish",
    .help =
        "usage: stoplog completion bash|zsh|fish\n"
        "\n"
        "Prints a script that completes commands, options, drafts, marks and\n"
        "changed paths. Evaluate it in your shell's start-up file.\n"
        "\n"
        "example: eval \"$(stoplog completion bash)\"\n",
    .min = 1,
    .max = 1,
    .run = run};

}  // namespace stoplog::cli
