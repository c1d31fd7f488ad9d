// SPDX-License-Identifier: Apache-2.0
#include <sys/wait.h>
#include <unistd.h>

#include <new>
#include <stdexcept>
#include <thread>

#include "base/escape.h"
#include "base/strings.h"
#include "catch_shim.h"
#include "cli/command.h"
#include "cli/exit_codes.h"

using namespace stoplog;
using namespace stoplog::cli;

namespace {

using Body = std::function<Result<int>(const Command*&)>;

struct Ended {
  int code = -1;  // 128 and a signal's number
  std::string said;
};

// In a process of its own, because it ends.
Ended run_apart(const Body& body) {
  int pipe[2];
  REQUIRE(::pipe(pipe) == 0);
  pid_t child = ::fork();
  if (child == 0) {
    ::dup2(pipe[1], 2);
    ::close(pipe[0]);
    ::close(pipe[1]);
    Output out(ColorMode::kNever);
    ::_exit(run_guarded(out, body));
  }
  ::close(pipe[1]);
  Ended ended;
  char block[4096];
  for (ssize_t n; (n = ::read(pipe[0], block, sizeof block)) > 0;)
    ended.said.append(block, static_cast<size_t>(n));
  ::close(pipe[0]);
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  ended.code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return ended;
}

}  // namespace

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

TEST_CASE("a bug is exit 70 and says so") {
  Ended ended = run_apart([](const Command*&) -> Result<int> {
    throw std::logic_error("a \033[31mred\nherring");
  });
  CHECK(ended.code == 70);
  CHECK(ended.said.starts_with(
      "stoplog: cannot go on: a bug in stoplog: a ^[[31mred"));
  CHECK(ended.said.find("\nhint: nothing that is held is lost") !=
        std::string::npos);
  CHECK(ended.said.find('\033') == std::string::npos);
  ended = run_apart([](const Command*&) -> Result<int> { throw 7; });
  CHECK(ended.code == 70);
  CHECK(ended.said.find("a bug in stoplog") != std::string::npos);
  ended = run_apart([](const Command*&) -> Result<int> {
    return fail(Code::kInternal, "cannot be");
  });
  CHECK(ended.code == 70);
  CHECK(ended.said == "stoplog: cannot be\n");
}

TEST_CASE("a bug on another thread is exit 70 as well and no crash") {
  Ended ended = run_apart([](const Command*&) -> Result<int> {
    std::thread([] { throw std::runtime_error("of a thread"); }).join();
    return 0;
  });
  CHECK(ended.code == 70);
  CHECK(ended.said.starts_with(
      "stoplog: cannot go on: a bug in stoplog: of a thread\n"));
}

TEST_CASE("running out of memory is called by its name") {
  Ended ended =
      run_apart([](const Command*&) -> Result<int> { throw std::bad_alloc(); });
  CHECK(ended.code == 70);
  CHECK(ended.said == "stoplog: cannot go on: out of memory\n");
}

TEST_CASE("a bug before the command of a run is 125") {
  Ended ended = run_apart([](const Command*& command) -> Result<int> {
    command = find_command("run");
    throw std::logic_error("x");
  });
  CHECK(ended.code == 125);
}
