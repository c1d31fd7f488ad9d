// SPDX-License-Identifier: Apache-2.0
#include "base/lease_calls.h"

#include <atomic>

namespace stoplog {
namespace {

std::atomic<bool> g_called = false;
static_assert(std::atomic<bool>::is_always_lock_free);

void on_call(int) { g_called.store(true, std::memory_order_relaxed); }

}  // namespace

LeaseCalls::LeaseCalls() {
  g_called = false;
  struct sigaction action{};
  action.sa_handler = on_call;
  ::sigemptyset(&action.sa_mask);
  action.sa_flags = SA_RESTART;
  ::sigaction(SIGURG, &action, &before_);
}

LeaseCalls::~LeaseCalls() { ::sigaction(SIGURG, &before_, nullptr); }

bool LeaseCalls::any() const {
  return g_called.load(std::memory_order_relaxed);
}

bool LeaseCalls::take() { return any() && g_called.exchange(false); }

}  // namespace stoplog
