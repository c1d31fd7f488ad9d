// SPDX-License-Identifier: Apache-2.0
#include "cli/wait_line.h"

#include "base/interrupt.h"
#include "base/sys_file.h"
#include "cli/progress_line.h"

namespace stoplog::cli {

WaitLine::WaitLine(std::string what)
    : WaitLine(std::move(what), terminal_for_errors(),
               std::chrono::seconds(1)) {}

WaitLine::WaitLine(std::string what, int fd, std::chrono::milliseconds step)
    : what_(std::move(what)), fd_(fd), step_(step) {
  if (fd_ >= 0) thread_ = std::thread([this] { draw(); });
}

void WaitLine::draw() {
  std::unique_lock lock(mutex_);
  int steps = 0;
  while (!ended_.wait_for(lock, step_, [this] { return end_; })) {
    // Ctrl-C had its say; nothing is drawn over that.
    if (noted_interrupt() != 0) continue;
    note_painted(true);
    (void)sys::write_full(fd_, fmt::format("\r\x1b[K{}: {} s", what_, ++steps));
  }
  if (steps > 0 && noted_interrupt() == 0)
    (void)sys::write_full(fd_, "\r\x1b[K");
  note_painted(false);
}

void WaitLine::clear() {
  {
    std::lock_guard lock(mutex_);
    end_ = true;
  }
  ended_.notify_one();
  if (thread_.joinable()) thread_.join();
}

}  // namespace stoplog::cli
