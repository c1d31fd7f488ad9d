// SPDX-License-Identifier: Apache-2.0
// The command line against a table of options.
//
//   constexpr OptionSpec kOptions[] = {{"json", 0, nullptr}, {"U", 'U', "N"}};
//   Args args = TRY(parse_args(words, {.command = "diff", .options =
//   kOptions})); args.has("json"); args.value("U"); args.positionals
//
// Long options as `--name VALUE` or `--name=VALUE`, letters as `-U 3` or `-U3`,
// letters without a value may be joined. Options and arguments may be mixed,
// unless `command_follows`: then the first argument ends the options. `--` ends
// them always. An option given twice counts last, unless it repeats. Errors are
// kUsage with the nearest option as hint. Pure.
#pragma once

#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace stoplog::cli {

struct OptionSpec {
  const char* name;             // long name without "--"
  char letter = 0;              // or 0
  const char* value = nullptr;  // what the value is called; nullptr: a flag
  bool repeats = false;
};

struct ArgSpec {
  std::string_view command;  // for messages
  std::span<const OptionSpec> options;
  bool command_follows = false;
  size_t min = 0, max = 0;  // arguments
};

struct Args {
  std::vector<std::string> positionals;
  std::map<std::string, std::vector<std::string>, std::less<>> options;
  bool double_dash = false;

  bool has(std::string_view name) const { return options.contains(name); }
  std::optional<std::string> value(std::string_view name) const;
  std::vector<std::string> values(std::string_view name) const;
};

Result<Args> parse_args(std::span<const std::string> words,
                        const ArgSpec& spec);

// A decimal number within bounds, or kUsage naming the option.
Result<uint64_t> parse_number(std::string_view text, std::string_view option,
                              uint64_t min, uint64_t max);

}  // namespace stoplog::cli
