// SPDX-License-Identifier: Apache-2.0
#include "jail/tty.h"

#include <poll.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstring>
#include <utility>

#include "base/sys_answers.h"
#include "base/sys_process.h"

namespace stoplog::jail {
namespace {

// Longer than the way to a terminal at the other end of the world and back;
// one that answers nothing costs so much after a command that asked.
constexpr std::chrono::milliseconds kAnswerTime{500};

// The guardian outlives a kill -9 of its parent by the moment that one
// tcsetattr takes. A byte means: all is well, just go.
[[noreturn]] void guard(int pipe, int own, const termios& saved) {
  sigset_t all;
  sigfillset(&all);  // SIGTTOU above all: we may be in the background by then
  ::sigprocmask(SIG_SETMASK, &all, nullptr);
  char word = 0;
  ssize_t got = 0;
  do {
    got = ::read(pipe, &word, 1);
  } while (got < 0 && errno == EINTR);
  if (got != 1) ::tcsetattr(own, TCSADRAIN, &saved);
  ::_exit(0);
}

struct Shape {
  termios modes;
  winsize size;
};

}  // namespace

Result<std::string> terminal_shape(int own) {
  Shape shape{};
  if (::tcgetattr(own, &shape.modes) < 0)
    return fail_errno(errno, "cannot read the terminal's modes");
  (void)::ioctl(own, TIOCGWINSZ, &shape.size);
  std::string bytes(sizeof shape, '\0');
  std::memcpy(bytes.data(), &shape, sizeof shape);
  return bytes;
}

Status shape_pty(int master, std::string_view bytes) {
  Shape shape{};
  if (bytes.size() != sizeof shape)
    return fail(Code::kInvalid, "bad shape of a terminal");
  std::memcpy(&shape, bytes.data(), sizeof shape);
  if (::tcsetattr(master, TCSANOW, &shape.modes) < 0 ||
      ::ioctl(master, TIOCSWINSZ, &shape.size) < 0)
    return fail_errno(errno, "cannot set up the terminal");
  return {};
}

Result<Terminal> Terminal::take(int own, int master, Output output) {
  Terminal terminal(own, master);
  terminal.output_ = output;
  if (::tcgetattr(own, &terminal.saved_) < 0)
    return fail_errno(errno, "cannot read the terminal's modes");
  terminal.start_guardian();
  TRY(terminal.retake());
  return terminal;
}

Terminal::Terminal(Terminal&& other) noexcept
    : own_(std::exchange(other.own_, -1)),
      master_(other.master_),
      output_(other.output_),
      saved_(other.saved_),
      raw_(std::exchange(other.raw_, false)),
      guardian_(std::move(other.guardian_)),
      guardian_pid_(std::exchange(other.guardian_pid_, -1)) {}

Terminal::~Terminal() {
  release();
  if (!guardian_) return;
  (void)!::write(guardian_.get(), "x", 1);
  guardian_.reset();
  // With SIGCHLD ignored there is nothing to wait for: ECHILD.
  while (::waitpid(guardian_pid_, nullptr, 0) < 0 && errno == EINTR) {
  }
}

void Terminal::start_guardian() {
  auto pipe = sys::pipe();
  if (!pipe) return;
  const pid_t pid = ::fork();
  if (pid < 0) return;
  if (pid == 0) {
    // Nothing but the terminal and the pipe: above all not the daemon's
    // socket, whose closing must end the command.
    const int own = ::dup2(own_, 0);
    const int in = ::dup2(pipe->read.get(), 1);
    (void)sys::close_range(2, ~0U, sys::CloseRange::kNow);
    guard(in, own, saved_);
  }
  guardian_pid_ = pid;
  guardian_ = std::move(pipe->write);
}

Status Terminal::retake() {
  // In the background it is not ours to change, and trying stops us.
  if (::tcgetpgrp(own_) != ::getpgrp()) return {};
  termios raw = saved_;
  ::cfmakeraw(&raw);
  if (output_ == Output::kKept) raw.c_oflag = saved_.c_oflag;
  if (::tcsetattr(own_, TCSADRAIN, &raw) < 0)
    return fail_errno(errno, "cannot set the terminal's modes");
  raw_ = true;
  return {};
}

void Terminal::release() {
  if (!raw_) return;
  // With the modes goes what came for the command and was not read by it: keys,
  // and the terminal's answers to what it asked.
  ::tcsetattr(own_, TCSAFLUSH, &saved_);
  raw_ = false;
}

void Terminal::await_answers(int screen) const {
  if (!raw_) return;
  (void)sys::await_answers(own_, screen, kAnswerTime);
}

void Terminal::resize() const {
  winsize size{};
  if (::ioctl(own_, TIOCGWINSZ, &size) == 0)
    ::ioctl(master_, TIOCSWINSZ, &size);
}

}  // namespace stoplog::jail
