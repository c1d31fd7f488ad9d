// SPDX-License-Identifier: Apache-2.0
// MountGuard: a small process that lets a mount die when its daemon is killed.
//
//   MountGuard guard = TRY(MountGuard::start(mounted, abort));  // forks
//   guard.end();                                                // clean stop
//
// A daemon killed with -9 while the kernel holds one of its threads in a
// notification (it waits for a page which a reader of the mount has locked) is
// not gone: that thread keeps the device open, so the kernel does not end the
// connection, and the reader waits for ever. Closing the readers' device fails
// the request in flight, but the reader asks again and nobody reads it. The
// guard has a device of its own: when the daemon dies it refuses whatever is
// asked until the last thread is gone, and then goes itself, which ends the
// connection. That needs no privilege. A request that came over io_uring does
// not end in this way: for those it aborts the connection first, through
// fusectl, or by MNT_FORCE in a user namespace, where nobody else sees that the
// mount goes with it. Elsewhere it must stay, for a program that goes on
// writing would write beneath it. Who cannot abort must not use io_uring.
//
// Start it while the process has one thread. Without permission to open
// /dev/fuse again there is no guard, and start() gives an empty one.
#pragma once

#include "base/fd.h"
#include "base/result.h"
#include "fs/mount_device.h"

namespace stoplog::fs {

class MountGuard {
 public:
  MountGuard() = default;
  enum class Abort { kNo, kIfPossible };
  static Result<MountGuard> start(const Mounted& mounted, Abort abort);
  MountGuard(MountGuard&&) noexcept = default;
  MountGuard& operator=(MountGuard&&) noexcept = default;
  ~MountGuard() { end(); }

  // It leaves without a word; waits for it.
  void end();
  explicit operator bool() const { return bool(pidfd_); }
  bool can_abort() const { return can_abort_; }

 private:
  Fd pidfd_;  // of the guard
  Fd life_;   // its other end is read by the guard: EOF is our death
  bool can_abort_ = false;
};

}  // namespace stoplog::fs
