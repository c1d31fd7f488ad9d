// SPDX-License-Identifier: Apache-2.0
#include "fs/mount_wake.h"

#include <pthread.h>

#include <chrono>

namespace stoplog::fs {
namespace {

int wake_signal() { return SIGRTMIN + 5; }
void on_wake(int) {}

}  // namespace

Status allow_wake() {
  struct sigaction action{};
  action.sa_handler = on_wake;  // no SA_RESTART: what sleeps must return
  if (::sigaction(wake_signal(), &action, nullptr) < 0)
    return fail_errno(errno);
  return {};
}

SignalsHeld::SignalsHeld() {
  sigset_t all;
  sigfillset(&all);
  sigdelset(&all, wake_signal());
  pthread_sigmask(SIG_SETMASK, &all, &before_);
}

SignalsHeld::~SignalsHeld() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

void interrupt_until(std::thread& thread, const std::atomic<bool>& done) {
  while (!done) {
    ::pthread_kill(thread.native_handle(), wake_signal());
    std::this_thread::sleep_for(std::chrono::microseconds(200));
  }
}

}  // namespace stoplog::fs
