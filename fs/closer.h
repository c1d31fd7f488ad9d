// SPDX-License-Identifier: Apache-2.0
// Closer: closes descriptors of files elsewhere (a network mount, another
// program's) in a thread of its own. Even one that was only read is asked
// about at close(2): sshfs wants a FLUSH answered, NFS a CLOSE; and a cache
// drops a descriptor when somebody asks for another file, or under a lock.
//
//   FdHandle fd = closer.keep(std::move(opened));   // closed there, later
//
// The thread is there while there is something to close. One that hangs keeps
// those behind it open, and nobody waits for it, the end of the process aside.
// Any thread.
#pragma once

#include <memory>

#include "fs/fd_cache.h"

namespace stoplog::fs {

class Closer {
 public:
  Closer();
  FdHandle keep(Fd fd) const;

 private:
  struct Queue;
  std::shared_ptr<Queue> queue_;
};

}  // namespace stoplog::fs
