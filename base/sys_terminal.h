// SPDX-License-Identifier: Apache-2.0
// What a full-screen program needs of the system: the size and settings of a
// terminal, signals as a file descriptor, an event descriptor between threads,
// and waiting for several descriptors at once.
//
//   SignalWatch watch = TRY(SignalWatch::start({SIGWINCH, SIGTERM}));
//   while (true) {
//     TRY(sys::wait_any(fds, -1));
//     while (int signal = watch.take()) ...
//   }
//
// A SignalWatch blocks its signals in the calling thread, and so in threads
// that are started later, until it is destroyed: start it before any thread.
#pragma once

#include <poll.h>
#include <signal.h>
#include <termios.h>

#include <cstddef>
#include <initializer_list>
#include <optional>
#include <span>
#include <string_view>

#include "base/fd.h"
#include "base/result.h"

namespace stoplog::sys {

bool is_terminal(int fd);
struct WindowSize {
  int columns = 0;
  int rows = 0;
};
// nullopt when it is no terminal or says nothing.
std::optional<WindowSize> window_size(int fd);

// The settings of a terminal, put back on request. put_back() is
// async-signal-safe and does nothing when there were none to take.
class TerminalState {
 public:
  static TerminalState take(int fd);
  void put_back() const;

 private:
  int fd_ = -1;
  bool known_ = false;
  termios state_{};
};

// From now on a crash (SIGSEGV, SIGABRT and their like) writes `sequence` to
// the terminal and puts its settings back before it goes its way. For as long
// as the object lives; one at a time.
class CrashGuard {
 public:
  CrashGuard(int fd, const TerminalState& state, std::string_view sequence);
  ~CrashGuard();
  CrashGuard(const CrashGuard&) = delete;
  CrashGuard& operator=(const CrashGuard&) = delete;
  // What a crash would do to the terminal, for who ends without one; nothing
  // when no guard lives.
  static void put_back();
};

class SignalWatch {
 public:
  static Result<SignalWatch> start(std::initializer_list<int> signals);
  SignalWatch(SignalWatch&&) noexcept;
  SignalWatch& operator=(SignalWatch&&) = delete;
  ~SignalWatch();

  int fd() const { return fd_.get(); }
  int take();  // the next signal that came, 0 when there is none

 private:
  SignalWatch(Fd fd, const sigset_t& before)
      : fd_(std::move(fd)), before_(before) {}
  Fd fd_;
  sigset_t before_{};
};

// Stops this process as Ctrl-Z would, though SIGTSTP is blocked or handled;
// returns when it goes on.
void stop_self();

Result<Fd> event_fd();
void raise_event(int fd);
void drain_event(int fd);

// read(2), once: 0 at the end of input.
Result<size_t> read_some(int fd, std::span<std::byte> out);

// poll(2): the number of descriptors that are ready, 0 at the timeout or when
// a signal came.
Result<int> wait_any(std::span<pollfd> fds, int timeout_ms);

}  // namespace stoplog::sys
