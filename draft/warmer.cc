// SPDX-License-Identifier: Apache-2.0
#include "draft/warmer.h"

#include <poll.h>
#include <sched.h>
#include <signal.h>

#include <chrono>

#include "base/child.h"
#include "base/sys_process.h"
#include "fs/warm.h"

namespace stoplog::draft {
namespace {

constexpr std::chrono::milliseconds kPatience{500};

}  // namespace

void Warmer::start(const std::string& mount) {
  try {
    thread_ = std::thread([this, mount] { run(mount); });
  } catch (const std::system_error&) {
    // It goes without.
  }
}

void Warmer::run(const std::string& mount) {
  {
    std::unique_lock lock(mutex_);
    if (wake_.wait_for(lock, kPatience, [this] { return stopping_; })) return;
  }
  // This thread stays until the process has ended: it would die with it.
  auto child = Child::spawn({.argv = {"stoplog", "daemon", "--warm", mount},
                             .program = "/proc/self/exe",
                             .die_with_parent = true});
  if (!child) return;
  {
    std::lock_guard lock(mutex_);
    if (stopping_) return;  // ~Child kills it
    process_ = child->pidfd();
  }
  (void)sys::wait_ready(child->pidfd(), POLLIN, -1);
  std::lock_guard lock(mutex_);
  process_ = -1;
}

void Warmer::stop() {
  {
    std::lock_guard lock(mutex_);
    stopping_ = true;
    if (process_ >= 0) (void)sys::pidfd_send_signal(process_, SIGKILL);
  }
  wake_.notify_all();
  if (thread_.joinable()) thread_.join();
}

Status warm_here(const std::string& mount) {
  sched_param none{};
  (void)::sched_setscheduler(0, SCHED_IDLE, &none);
  TRY(fs::warm(mount, {}));
  return {};
}

}  // namespace stoplog::draft
