// SPDX-License-Identifier: Apache-2.0
// MountThread: what ReaderPool and RingPool know of each thread that serves
// requests, and what both do with all of theirs.
//
//   struct Worker : MountThread { ... };
//   std::list<std::unique_ptr<Worker>> workers_;
//   end_all(std::exchange(workers_, {}));   // with no lock held
//
// The thread itself sets the atomics; the list is its pool's, by its lock.
#pragma once

#include <sys/types.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <limits>
#include <list>
#include <memory>
#include <string>
#include <thread>

#include "base/proc_stat.h"
#include "fs/mount_wake.h"

namespace stoplog::fs {

struct MountThread {
  std::thread thread;
  std::atomic<uint64_t> since{0};  // its request's place in order; 0: idle
  std::atomic<pid_t> tid{0};
  std::atomic<bool> done{false};

  // Waits for something beneath: a disk, a network, a lock. Where it only lacks
  // a processor, one more beside it would make things worse.
  bool is_blocked() const {
    char state = proc_state("/proc/self/task/" + std::to_string(tid) + "/stat");
    return state != 0 && state != 'R';
  }
};

// Waits for requests being served. A thread on its way out may take its pool's
// lock.
template <typename Worker>
void end_all(std::list<std::unique_ptr<Worker>> ending) {
  for (auto& worker : ending) {
    interrupt_until(worker->thread, worker->done);
    worker->thread.join();
  }
}

// Of the requests being served; the greatest number when there are none.
template <typename Worker>
uint64_t oldest_of(const std::list<std::unique_ptr<Worker>>& workers) {
  uint64_t oldest = std::numeric_limits<uint64_t>::max();
  for (const auto& worker : workers)
    if (uint64_t since = worker->since; since != 0)
      oldest = std::min(oldest, since);
  return oldest;
}

}  // namespace stoplog::fs
