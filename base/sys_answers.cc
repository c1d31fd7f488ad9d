// SPDX-License-Identifier: Apache-2.0
#include "base/sys_answers.h"

#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <termios.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <string>

namespace stoplog::sys {
namespace {

constexpr std::chrono::milliseconds kSilence{20};
// What is answered decides: longer than after a command.
constexpr std::chrono::milliseconds kBeforeQuestion{1000};

bool knows_questions() {
  const char* term = ::getenv("TERM");
  return term != nullptr && *term != '\0' && std::string_view(term) != "dumb";
}

}  // namespace

bool await_answers(int in, int screen, std::chrono::milliseconds most) {
  // CAN ends a sequence that the command left open and that would swallow the
  // rest: the mouse and focus off, and the question: is all well?
  constexpr std::string_view kFence =
      "\x18\x1b[?1000l\x1b[?1002l\x1b[?1003l\x1b[?1004l\x1b[5n";
  constexpr std::string_view kAnswer = "\x1b[0n";
  if (::write(screen, kFence.data(), kFence.size()) !=
      static_cast<ssize_t>(kFence.size()))
    return false;
  using Clock = std::chrono::steady_clock;
  const auto end = Clock::now() + most;
  std::string got;
  bool answered = false;
  while (true) {
    const auto left =
        std::chrono::ceil<std::chrono::milliseconds>(end - Clock::now());
    if (left.count() <= 0) return answered;
    // The command may have asked the same: what follows its answer is awaited
    // until there is a silence.
    const auto wait = answered ? std::min(left, kSilence) : left;
    pollfd fd{in, POLLIN, 0};
    if (::poll(&fd, 1, static_cast<int>(wait.count())) <= 0) {
      if (answered) return true;
      continue;
    }
    std::array<char, 4096> bytes;
    const ssize_t count = ::read(in, bytes.data(), bytes.size());
    if (count <= 0) return answered;
    got.append(bytes.data(), static_cast<size_t>(count));
    answered |= got.find(kAnswer) != std::string::npos;
    if (got.size() > bytes.size()) got.erase(0, got.size() - kAnswer.size());
  }
}

void forget_input(int in, int screen) {
  termios saved{};
  if (!knows_questions() || ::isatty(screen) != 1 ||
      ::tcgetattr(in, &saved) < 0)
    return;
  // In the background it is not ours to change, and trying stops us.
  if (::tcgetpgrp(in) != ::getpgrp()) return;
  // A signal comes when the modes are put back.
  sigset_t all, before;
  sigfillset(&all);
  ::sigprocmask(SIG_BLOCK, &all, &before);
  termios quiet = saved;
  // Ctrl-C stays what it is.
  quiet.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO);
  quiet.c_cc[VMIN] = 1;
  quiet.c_cc[VTIME] = 0;
  const bool set = ::tcsetattr(in, TCSAFLUSH, &quiet) == 0;
  if (set) (void)await_answers(in, screen, kBeforeQuestion);
  if (set) ::tcsetattr(in, TCSAFLUSH, &saved);
  ::sigprocmask(SIG_SETMASK, &before, nullptr);
}

bool is_typed(std::string_view line) {
  return std::ranges::all_of(line, [](char c) {
    const auto byte = static_cast<unsigned char>(c);
    return c == '\t' || (byte >= 0x20 && byte != 0x7f);
  });
}

}  // namespace stoplog::sys
