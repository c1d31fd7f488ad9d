// SPDX-License-Identifier: Apache-2.0
// RingPool: threads that take requests of a FUSE connection from io_uring and
// serve them (Linux 6.14, where root has set the fuse module's enable_uring).
// The kernel has a queue for each processor and gives a request to the one on
// which its caller runs; a thread that is bound to that processor then serves
// it without waking another one, which is most of what a round trip through
// /dev/fuse costs (docs/PERFORMANCE.md).
//
//   RingPool rings(options);
//   TRY(rings.prepare());    // threads and rings; requests still come
//   elsewhere
//   ... INIT is answered with ring::kInitFlag ...
//   rings.go();              // the kernel waits for this with everything else
//   rings.stop();
//
// What the kernel refuses to take into its queues (the switch went off while
// INIT was answered) it does not wait for: then the device serves alone.
//
// A thread has one slot, so that what hangs in one request (a network file
// system beneath) keeps no other. Each queue has two threads, the second bound
// to no processor, and gets more while all it has are blocked; those stay.
// Forgotten nodes and interrupts still come from the device: ReaderPool's.
//
// `serve` is called from many threads and must not throw. stop() interrupts by
// a signal (fs/mount_wake.h).
// Lock order: mutex_ is a leaf.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "base/result.h"
#include "base/sys_uring.h"
#include "fs/mount_thread.h"
#include "fs/ring_slot.h"

namespace stoplog::fs {

class RingPool {
 public:
  struct Options {
    int device = -1;  // borrowed
    size_t payload = 1u << 20;
    int most_each = 16;  // threads of a queue
    // The place in the order of requests, as ReaderPool::position().
    std::function<uint64_t()> position;
    std::function<void(RingSlot&, std::span<std::byte>)> serve;
    std::function<void(std::string_view)> log;
    // A thread that cannot go on: without it requests would wait for ever.
    std::function<void()> failed;
  };
  explicit RingPool(Options options);
  ~RingPool();
  RingPool(const RingPool&) = delete;
  RingPool& operator=(const RingPool&) = delete;

  // Fails where a ring cannot be made: then the device serves alone.
  Status prepare();
  void go();
  // Waits for requests being served; those still queued stay in the kernel.
  void stop();
  // As ReaderPool::oldest_busy().
  uint64_t oldest_busy() const;
  int threads() const;
  // False: requests come from the device.
  bool serves() const;

 private:
  struct Queue {
    std::atomic<int> idle{0};
    std::atomic<uint64_t> taken{0};
    uint64_t seen = 0;  // by grow()
    int workers = 0;    // mutex_
  };
  struct Worker : MountThread {
    std::vector<uint16_t> queues;  // several only where processors are absent
    bool bound = false;
  };
  enum class Stage { kPreparing, kReady, kServing, kStopping };

  Status spawn(std::vector<uint16_t> queues, bool bound);  // mutex_ held
  void run(Worker& self);
  Status serve_queues(Worker& self);
  void serve_one(Worker& self, RingSlot& slot, Queue& queue);
  bool ready(const std::optional<Error>& failed);
  void note_refused(int err);
  bool is_serving() const;
  void grow();
  bool grow_once();
  bool all_blocked(uint16_t queue) const;  // mutex_ held
  void note_none_idle();

  Options options_;
  std::vector<std::unique_ptr<Queue>> queues_;
  std::atomic<bool> stopping_{false};
  std::atomic<bool> looking_{false};  // grow() is awake
  std::atomic<bool> refused_{false};
  mutable std::mutex mutex_;  // protects all below
  std::condition_variable changed_;
  std::condition_variable look_;
  Stage stage_ = Stage::kPreparing;
  int prepared_ = 0, failed_ = 0;
  std::string why_;
  std::list<std::unique_ptr<Worker>> workers_;
  std::thread grower_;
};

}  // namespace stoplog::fs
