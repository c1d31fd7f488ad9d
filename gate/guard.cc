// SPDX-License-Identifier: Apache-2.0
#include "gate/guard.h"

#include <chrono>
#include <thread>

#include "base/sys_attr.h"
#include "base/sys_node.h"
#include "gate/disk.h"

namespace stoplog::gate {
namespace {

// How long a program may take to finish a save that it has begun.
constexpr auto kPause = std::chrono::milliseconds(5);
constexpr int kPauses = 60;

}  // namespace

Result<Guard> Guard::take(const Disk& disk, int dir, const std::string& name,
                          Wait wait) {
  Guard guard;
  for (int i = 0;; ++i) {
    TRY(disk.step("lease"));
    auto fd = sys::open_quiet(dir, name, O_RDONLY | O_NONBLOCK);
    // Unreadable for its owner: then nobody can say what is in it either.
    if (!fd) return std::unexpected(fd.error());
    guard.fd_ = std::move(*fd);
    Status leased = sys::take_read_lease(guard.fd_.get());
    guard.stat_ = TRY(sys::fstat(guard.fd_.get()));
    if (leased) {
      guard.state_ = State::kHeld;
      return guard;
    }
    // EACCES: not the owner; EINVAL, EOPNOTSUPP: no leases here, or no file.
    if (leased.error().err() != EAGAIN || !S_ISREG(guard.stat_.mode))
      return guard;
    if (i == kPauses || wait == Wait::kNo) {
      guard.state_ = State::kBusy;
      return guard;
    }
    std::this_thread::sleep_for(kPause);
  }
}

bool Guard::is_wanted() const {
  return holds() && !sys::holds_read_lease(fd_.get());
}

}  // namespace stoplog::gate
