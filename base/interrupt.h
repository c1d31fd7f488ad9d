// SPDX-License-Identifier: Apache-2.0
// Ctrl-C (SIGINT), SIGTERM and SIGHUP without debris.
//
//   int main() { catch_interrupts(); ... }
//   Hold hold;                     // something half-made is about to be
//   for (...) TRY(check_interrupt());      // where giving up is fine
//
// Once caught, these signals still end the process at once, except while a Hold
// lives: then they are noted. check_interrupt() fails from then on (EINTR),
// so that what is half-made is removed on the way out and
// the program says so, after which main calls end_if_interrupted(). Who does
// not ask finishes, and the signal ends the process with the last Hold. The
// same signal again, a second or more after the first, ends it at once.
//
// A Hold is two counter operations and no system call; where nobody called
// catch_interrupts() (the daemon, tests) it means nothing. Any thread.
#pragma once

#include <atomic>
#include <utility>

#include "base/result.h"

namespace stoplog {

// Signals that were ignored when the program began (nohup) stay so.
void catch_interrupts();

class Hold {
 public:
  Hold();
  Hold(Hold&& other) noexcept : mine_(std::exchange(other.mine_, false)) {}
  Hold& operator=(Hold&& other) noexcept {
    std::swap(mine_, other.mine_);
    return *this;
  }
  ~Hold() { release(); }
  void release();
  // Outlives this object until somebody takes it over again.
  void give_away() { mine_ = false; }
  static Hold take_over() { return Hold(true); }

 private:
  explicit Hold(bool mine) : mine_(mine) {}
  bool mine_ = true;
};

Status check_interrupt();
// The signal that was noted; 0: none.
int noted_interrupt();
// True from then on, for work that looks at a flag.
const std::atomic<bool>& interrupt_flag();
// Ends the process by the noted signal, as if it had never been caught: a
// shell's loop ends, too. The shell says 130 for Ctrl-C.
void end_if_interrupted();

// What is told on stderr, at once, when the signal comes: what goes on without
// us or has to be finished first. A literal, and a whole line.
class OnInterrupt {
 public:
  explicit OnInterrupt(const char* line);
  ~OnInterrupt();
  OnInterrupt(const OnInterrupt&) = delete;
  OnInterrupt& operator=(const OnInterrupt&) = delete;

 private:
  const char* before_;
};

// Something is painted on stderr that has no line of its own: wiped first.
void note_painted(bool painted);

}  // namespace stoplog
