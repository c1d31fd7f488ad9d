// SPDX-License-Identifier: Apache-2.0
#include "base/escape.h"
#include "base/strings.h"
#include "catch_shim.h"
#include "cli/command.h"
#include "cli/exit_codes.h"

using namespace stoplog;
using namespace stoplog::cli;

TEST_CASE("the help of every command fits a screen and names its options") {
  for (const Command* command : all_commands()) {
    INFO(command->name);
    std::vector<std::string_view> lines = split(command->help, '\n');
    CHECK(lines.size() <= 25);  // the last is empty
    for (std::string_view line : lines) {
      INFO(line);
      CHECK(display_width(line) <= 80);
    }
    bool example = command->help.find("example: ") != std::string_view::npos;
    CHECK(example);
    CHECK(command->help.starts_with("usage: stoplog " +
                                    std::string(command->name)));
    for (const OptionSpec& option : command->options) {
      INFO(option.name);
      bool named = command->help.find(std::string("--") + option.name) !=
                       std::string_view::npos ||
                   (std::string_view(option.name).size() == 1 &&
                    command->help.find(std::string("-") + option.letter) !=
                        std::string_view::npos);
      CHECK(named);
    }
    CHECK(command->run != nullptr);
  }
}

TEST_CASE("the overview fits a screen and names every command") {
  std::string text = overview();
  CHECK(split(text, '\n').size() <= 24);  // with the prompt beneath it
  for (std::string_view line : split(text, '\n'))
    CHECK(display_width(line) <= 80);
  for (const Command* command : all_commands())
    if (!command->summary.empty())
      CHECK(text.find("  " + std::string(command->name) + " ") !=
            std::string::npos);
}

TEST_CASE("every kind of error has its exit code") {
  auto code = [](Code c) { return exit_code_of(Error(c, "x")); };
  CHECK(code(Code::kUsage) == 2);
  CHECK(code(Code::kDrift) == 3);
  CHECK(code(Code::kRefused) == 4);
  CHECK(code(Code::kUnsupported) == 5);
  CHECK(code(Code::kRolledBack) == 6);
  CHECK(code(Code::kDeclined) == 1);
  CHECK(code(Code::kInternal) == 70);
  CHECK(run_exit_code_of(Error(EIO)) == 125);
  CHECK(run_exit_code_of(Error(Code::kUnsupported, "x")) == 5);
}
