// SPDX-License-Identifier: Apache-2.0
// The table of commands. One file a command (cmd_NAME.cc) defines one constant
// of type Command; commands.cc lists them. Help is a text written by hand: at
// most 24 lines of 80 columns, with an example; a test holds it to that and to
// naming every option.
#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "cli/args.h"
#include "cli/context.h"

namespace stoplog::cli {

struct Command {
  std::string_view name;
  std::string_view summary;  // one line of the overview; "" hides it
  std::string_view help;
  std::span<const OptionSpec> options = {};
  size_t min = 0, max = 0;       // arguments
  bool command_follows = false;  // the first argument ends the options
  // The exit code, or an error that main prints.
  Result<int> (*run)(Context&, const Args&) = nullptr;
};

inline constexpr size_t kAnyNumber = 1'000'000;

std::span<const Command* const> all_commands();
const Command* find_command(std::string_view name);
// With the nearest name as its hint.
Error unknown_command(const std::string& name);
// What may stand before every command, and after it.
std::span<const OptionSpec> global_options();
// The overview of `stoplog --help`.
std::string overview();

// The whole program: parses, runs, prints errors. `words` without argv[0].
int run_program(std::vector<std::string> words);
// Its outside: the exit code of what `body` does, which names the command once
// it is known. Whatever is thrown, on any thread, is said and is exit 70.
int run_guarded(Output& out,
                const std::function<Result<int>(const Command*& named)>& body);

}  // namespace stoplog::cli
