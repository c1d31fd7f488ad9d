// SPDX-License-Identifier: Apache-2.0
#include "cli/output.h"

#include <signal.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <initializer_list>
#include <string>
#include <utility>

#include "base/escape.h"
#include "base/fold.h"
#include "base/strings.h"
#include "base/sys_answers.h"
#include "base/sys_file.h"
#include "base/sys_process.h"

namespace stoplog::cli {
namespace {

std::string environment(const char* name) {
  const char* value = ::getenv(name);
  return value != nullptr ? value : "";
}

bool wants_color(ColorMode mode, int fd) {
  if (mode != ColorMode::kAuto) return mode == ColorMode::kAlways;
  std::string force = environment("CLICOLOR_FORCE");
  if (!force.empty() && force != "0") return true;
  if (!environment("NO_COLOR").empty()) return false;
  return ::isatty(fd) == 1 && environment("TERM") != "dumb";
}

std::string colored(std::string_view text, const char* code, bool color) {
  if (!color) return std::string(text);
  return fmt::format("\x1b[{}m{}\x1b[0m", code, text);
}

bool has_program(const std::string& name) {
  std::string path = environment("PATH");
  for (std::string_view directory : split(path, ':'))
    if (!directory.empty() &&
        ::access(fmt::format("{}/{}", directory, name).c_str(), X_OK) == 0)
      return true;
  return false;
}

unsigned width_of_any(std::initializer_list<int> fds) {
  winsize size{};
  for (int fd : fds)
    if (::ioctl(fd, TIOCGWINSZ, &size) == 0 && size.ws_col > 0)
      return size.ws_col;
  return 80;
}

void to_stderr(const std::string& line) {
  (void)sys::write_full(2, line + "\n");
}

// Of our own; programs find a sentence on one line.
void say_sentence(const std::string& text) {
  if (::isatty(2) != 1) return to_stderr(text);
  to_stderr(fold_prose(text, width_of_any({2, 1, 0})));
}

}  // namespace

Output::Output(ColorMode mode) : terminal_(::isatty(1) == 1) {
  set_color(mode);
}

Output::~Output() { finish(); }

void Output::set_color(ColorMode mode) {
  color_ = wants_color(mode, 1);
  error_color_ = wants_color(mode, 2);
}

unsigned Output::width() const { return width_of_any({1, 2, 0}); }

void Output::write(std::string_view text) {
  if (dead_) return;
  buffer_ += text;
  if (buffer_.size() >= 64u << 10) flush();
}

void Output::flush() {
  if (buffer_.empty()) return;
  if (!dead_) {
    Status written = sys::write_full(fd_, buffer_);
    dead_ = !written;
    if (!written && written.error().err() != EPIPE)
      failure_ = std::move(written).error().context("cannot write the result");
  }
  buffer_.clear();
}

void Output::note(std::string_view text) {
  flush();
  say_sentence(fmt::format("stoplog: {}", escape(text, Escape::kText)));
}

void Output::say(std::string_view text) {
  flush();
  while (text.ends_with('\n')) text.remove_suffix(1);
  if (!text.empty()) to_stderr(std::string(text));
}

void Output::settle_terminal() {
  if (::isatty(2) != 1 || environment("TERM") == "dumb") return;
  flush();
  (void)sys::write_full(
      2,
      "\x18\x1b\\"              // the end of any sequence that was begun
      "\x1b[?2026l\x1b[?1047l"  // shown at once, on the first screen
      // The margins' end moves the cursor, and what is kept with it may hide.
      "\x1b\x37\x1b[?69l\x1b[r\x1b\x38"
      "\x1b[m\x1b(B\x0f\x1b[4l\x1b[?5l\x1b[?7h\x1b[?25h"  // plain text
      // Reports of the mouse and of pasting are no keys of ours.
      "\x1b[?1000l\x1b[?1002l\x1b[?1003l\x1b[?1004l\x1b[?1006l\x1b[?2004l"
      "\x1b[?1l\x1b>");
}

void Output::hint(std::string_view text) {
  flush();
  say_sentence(fmt::format("{} {}", colored("hint:", "33", error_color_),
                           escape(text, Escape::kText)));
}

void Output::error(const Error& error) {
  flush();
  say_sentence(fmt::format("{} {}", colored("stoplog:", "31;1", error_color_),
                           escape(error.text(), Escape::kText)));
  if (!error.hint().empty())
    hint(error.hint());
  else if (error.err() == ENOSPC || error.err() == EDQUOT)
    hint(
        "no room is left; what is held stays as it is: `stoplog gc` frees what "
        "no draft needs, `stoplog rm` a draft");
}

void Output::start_pager() {
  if (!terminal_ || pager_) return;
  std::string command = has_program("less") ? "less -FRX" : "";
  if (::getenv("PAGER") != nullptr) command = environment("PAGER");
  if (::getenv("STOPLOG_PAGER") != nullptr)
    command = environment("STOPLOG_PAGER");
  if (command.empty() || command == "cat") return;
  auto pipe = sys::pipe();
  if (!pipe) return;
  // What we print is UTF-8, and checked: less would else show our own marks as
  // <E2><80><A6> wherever no locale is set (su -, cron, containers).
  ::setenv("LESSCHARSET", "utf-8", 0);
  // Ctrl-C is the pager's: ours is to end when it does.
  auto child = Child::spawn(
      {.argv = {"/bin/sh", "-c", command}, .fds = {{pipe->read.get(), 0}}});
  if (!child) return;
  ::signal(SIGINT, SIG_IGN);
  ::signal(SIGPIPE, SIG_IGN);
  pager_ = std::move(*child);
  pipe_ = std::move(pipe->write);
  fd_ = pipe_.get();
}

void Output::finish() {
  flush();
  if (!pager_) return;
  pipe_.reset();
  fd_ = 1;
  (void)pager_->wait();
  pager_.reset();
}

// A line that no person typed is asked for again, so often.
constexpr int kTries = 3;

bool can_ask() { return ::isatty(0) == 1 && ::isatty(2) == 1; }

bool ask_yes(std::string_view question) {
  if (!can_ask()) return false;
  // What a command asked the terminal, and what was typed before the first
  // question could be read, is no answer to it.
  static bool asked = false;
  if (!std::exchange(asked, true)) sys::forget_input(0, 2);
  for (int tries = 0; tries < kTries; ++tries) {
    (void)sys::write_full(2, fmt::format("{} [y/N] ", question));
    std::string answer;
    char c = 0;
    while (::read(0, &c, 1) == 1 && c != '\n') answer += c;
    if (c != '\n') {
      // Ctrl-D: the cursor still stands behind the question.
      (void)sys::write_full(2, "\n");
      return false;
    }
    if (sys::is_typed(answer))
      return answer == "y" || answer == "Y" || answer == "yes";
  }
  return false;
}

}  // namespace stoplog::cli
