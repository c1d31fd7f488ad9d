// SPDX-License-Identifier: Apache-2.0
// How threads that sleep in the kernel for requests are ended: by a signal that
// has no other meaning (SIGRTMIN + 5), and that only interrupts.
//
//   TRY(allow_wake());                  // once, before the threads
//   { SignalsHeld held; thread = ... }  // it takes no other signal
//   interrupt_until(thread, done);      // done: set by the thread as it ends
#pragma once

#include <signal.h>

#include <atomic>
#include <thread>

#include "base/result.h"

namespace stoplog::fs {

Status allow_wake();

// The daemon's own signals are for its own loop.
class SignalsHeld {
 public:
  SignalsHeld();
  ~SignalsHeld();
  SignalsHeld(const SignalsHeld&) = delete;
  SignalsHeld& operator=(const SignalsHeld&) = delete;

 private:
  sigset_t before_{};
};

// The signal can come just before the thread goes to sleep: repeated until it
// ends.
void interrupt_until(std::thread& thread, const std::atomic<bool>& done);

}  // namespace stoplog::fs
