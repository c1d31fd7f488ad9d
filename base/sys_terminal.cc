// SPDX-License-Identifier: Apache-2.0
#include "base/sys_terminal.h"

#include <pthread.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "base/sys_retry.h"

namespace stoplog::sys {
namespace {

constexpr std::array kCrashes = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT};

// All that a handler may touch; set before the handlers are.
struct {
  int fd = -1;
  TerminalState state;
  char sequence[256];
  size_t length = 0;
} crash;

void on_crash(int signal) {
  CrashGuard::put_back();
  // SA_RESETHAND has put the default back: this time it kills.
  ::raise(signal);
}

}  // namespace

bool is_terminal(int fd) { return ::isatty(fd) == 1; }

std::optional<WindowSize> window_size(int fd) {
  winsize size{};
  if (::ioctl(fd, TIOCGWINSZ, &size) != 0) return std::nullopt;
  if (size.ws_col == 0 || size.ws_row == 0) return std::nullopt;
  return WindowSize{size.ws_col, size.ws_row};
}

TerminalState TerminalState::take(int fd) {
  TerminalState out;
  out.fd_ = fd;
  out.known_ = ::tcgetattr(fd, &out.state_) == 0;
  return out;
}

void TerminalState::put_back() const {
  if (!known_) return;
  // A background process that sets the terminal is stopped by SIGTTOU; here it
  // would never end.
  sigset_t block, before;
  sigemptyset(&block);
  sigaddset(&block, SIGTTOU);
  ::pthread_sigmask(SIG_BLOCK, &block, &before);
  ::tcsetattr(fd_, TCSANOW, &state_);
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

CrashGuard::CrashGuard(int fd, const TerminalState& state,
                       std::string_view sequence) {
  crash.fd = fd;
  crash.state = state;
  crash.length = std::min(sequence.size(), sizeof crash.sequence);
  std::memcpy(crash.sequence, sequence.data(), crash.length);
  struct sigaction action{};
  action.sa_handler = on_crash;
  action.sa_flags = static_cast<int>(SA_RESETHAND);
  for (int signal : kCrashes) {
    struct sigaction before{};
    ::sigaction(signal, nullptr, &before);
    // A sanitizer's handler stays.
    if (before.sa_handler == SIG_DFL) ::sigaction(signal, &action, nullptr);
  }
}

void CrashGuard::put_back() {
  if (crash.fd < 0) return;
  (void)!::write(crash.fd, crash.sequence, crash.length);
  crash.state.put_back();
}

CrashGuard::~CrashGuard() {
  for (int signal : kCrashes) {
    struct sigaction now{};
    ::sigaction(signal, nullptr, &now);
    if (now.sa_handler != on_crash) continue;
    now.sa_handler = SIG_DFL;
    ::sigaction(signal, &now, nullptr);
  }
  crash.fd = -1;
}

Result<SignalWatch> SignalWatch::start(std::initializer_list<int> signals) {
  sigset_t set, before;
  sigemptyset(&set);
  for (int signal : signals) sigaddset(&set, signal);
  int fd = ::signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
  if (fd < 0) return fail_errno(errno, "cannot watch for signals");
  Fd owned(fd);
  int error = ::pthread_sigmask(SIG_BLOCK, &set, &before);
  if (error != 0) return fail_errno(error, "cannot block signals");
  return SignalWatch(std::move(owned), before);
}

SignalWatch::SignalWatch(SignalWatch&& other) noexcept
    : fd_(std::move(other.fd_)), before_(other.before_) {}

SignalWatch::~SignalWatch() {
  if (!fd_) return;
  // What is still pending was meant for the screen that is gone.
  while (take() != 0) continue;
  ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
}

int SignalWatch::take() {
  signalfd_siginfo info{};
  auto got = retry([&] { return ::read(fd_.get(), &info, sizeof info); });
  return got == static_cast<ssize_t>(sizeof info)
             ? static_cast<int>(info.ssi_signo)
             : 0;
}

void stop_self() {
  struct sigaction normal{}, before{};
  normal.sa_handler = SIG_DFL;
  ::sigaction(SIGTSTP, &normal, &before);
  sigset_t open, mask;
  sigemptyset(&open);
  sigaddset(&open, SIGTSTP);
  ::pthread_sigmask(SIG_UNBLOCK, &open, &mask);
  ::raise(SIGTSTP);
  ::pthread_sigmask(SIG_SETMASK, &mask, nullptr);
  ::sigaction(SIGTSTP, &before, nullptr);
}

Result<Fd> event_fd() {
  int fd = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (fd < 0) return fail_errno(errno, "cannot make an event descriptor");
  return Fd(fd);
}

void raise_event(int fd) {
  uint64_t one = 1;
  // A full counter is as good as a raised one.
  (void)!retry([&] { return ::write(fd, &one, sizeof one); });
}

void drain_event(int fd) {
  uint64_t count = 0;
  (void)!retry([&] { return ::read(fd, &count, sizeof count); });
}

Result<size_t> read_some(int fd, std::span<std::byte> out) {
  auto got = retry([&] { return ::read(fd, out.data(), out.size()); });
  if (got < 0) return fail_errno(errno, "cannot read input");
  return static_cast<size_t>(got);
}

Result<int> wait_any(std::span<pollfd> fds, int timeout_ms) {
  int ready = ::poll(fds.data(), fds.size(), timeout_ms);
  if (ready >= 0) return ready;
  if (errno == EINTR) return 0;
  return fail_errno(errno, "cannot wait for input");
}

}  // namespace stoplog::sys
