// SPDX-License-Identifier: Apache-2.0
#include "draft/warmer.h"

#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <string_view>

#include "base/child.h"
#include "base/sys_file.h"
#include "base/sys_process.h"
#include "fs/warm.h"

namespace stoplog::draft {
namespace {

constexpr std::chrono::milliseconds kPatience{500};
constexpr uint64_t kMostContent = 64 << 20;

// In bytes; none when it cannot be known.
uint64_t available_memory() {
  auto text = sys::read_file(AT_FDCWD, "/proc/meminfo", 64 * 1024);
  if (!text) return 0;
  constexpr std::string_view kLabel = "MemAvailable:";
  const size_t at = text->find(kLabel);
  if (at == std::string::npos) return 0;
  return std::strtoull(text->c_str() + at + kLabel.size(), nullptr, 10) * 1024;
}

}  // namespace

void Warmer::start(const std::string& mount, bool contents,
                   std::function<void(pid_t)> told) {
  try {
    thread_ = std::thread([this, mount, contents, told = std::move(told)] {
      run(mount, contents, told);
    });
  } catch (const std::system_error&) {
    // It goes without.
  }
}

void Warmer::run(const std::string& mount, bool contents,
                 const std::function<void(pid_t)>& told) {
  {
    std::unique_lock lock(mutex_);
    if (wake_.wait_for(lock, kPatience, [this] { return stopping_; })) return;
  }
  // This thread stays until the process has ended: it would die with it.
  std::vector<std::string> argv = {"stoplog", "daemon", "--warm", mount};
  if (contents) argv.emplace_back("--contents");
  auto child = Child::spawn({.argv = std::move(argv),
                             .program = "/proc/self/exe",
                             .die_with_parent = true});
  if (!child) return;
  // Names come first, and take longer than this.
  told(child->pid());
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

Status warm_here(const std::string& mount, bool contents) {
  sched_param none{};
  (void)::sched_setscheduler(0, SCHED_IDLE, &none);
  fs::WarmLimits limits;
  if (contents) limits.bytes = std::min(kMostContent, available_memory() / 16);
  TRY(fs::warm(mount, limits));
  return {};
}

}  // namespace stoplog::draft
