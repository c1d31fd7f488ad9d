// SPDX-License-Identifier: Apache-2.0
// ReaderPool: the threads that read requests from /dev/fuse and serve them.
//
//   ReaderPool pool({.device = fd, .polled = clone, .serve = serve});
//   TRY(pool.start());
//   ...
//   pool.stop();
//
// One reader is in the device at a time: to wake a thread costs more than most
// requests do. There are two while large requests come, and one more (up to
// 16) for each that had to sleep, for a disk, while nobody was there for the
// next. Another thread dozes beside them and looks every few milliseconds; when
// all readers are blocked, or at something slow, it takes its place among them
// and another dozes, so that a request which hangs (a dead network mount
// beneath) or computes for long delays its own caller alone. Surplus ends by
// itself. Nothing wakes up while no request comes.
//
// Readers block in read(2) rather than poll(2): the kernel wakes one sleeping
// reader of a FUSE device but every poller. With `polled`, a clone of `device`
// whose reads do not block, a reader may ask there for a while before it
// sleeps (fs/mount_spin.h). Both are borrowed. stop() interrupts readers by a
// signal (fs/mount_wake.h).
//
// `serve` is called from many threads and must not throw; an answer goes to
// the device that the request came from.
//
// grace: an answer begun before tick() may carry what was true before it.
//   uint64_t t = pool.tick(); ... if (pool.oldest_busy() > t) all are out.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <span>
#include <thread>

#include "base/fd.h"
#include "base/result.h"
#include "fs/mount_spin.h"
#include "fs/mount_thread.h"

namespace stoplog::fs {

class ReaderPool {
 public:
  struct Request {
    std::span<std::byte> bytes;
    int device = -1;
  };
  struct Options {
    int device = -1;
    int polled = -1;
    size_t buffer = (1u << 20) + (64u << 10);
    int least = 1;   // readers
    int most = 512;  // a reader costs 12 KiB until it serves a large write
    // Of a request: whether another may be served beside it to advantage.
    std::function<bool(std::span<const std::byte>)> is_large;
    std::function<void(const Request&)> serve;
  };
  explicit ReaderPool(Options options);
  ~ReaderPool();
  ReaderPool(const ReaderPool&) = delete;
  ReaderPool& operator=(const ReaderPool&) = delete;

  Status start();
  // Waits for requests being served; those still queued stay in the kernel.
  void stop();
  // Readable once the connection has ended (unmounted or aborted).
  int ended_fd() const { return ended_.get(); }
  bool has_ended() const { return gone_.load(); }

  uint64_t tick() { return sequence_.fetch_add(1); }
  // What a request that begins now is as old as; for who serves beside.
  uint64_t position() const { return sequence_.load(); }
  uint64_t oldest_busy() const;
  int threads() const;

 private:
  using Worker = MountThread;

  Status spawn();  // mutex_ held
  void run(Worker& self);
  bool doze();
  bool readers_blocked() const;
  bool read_until_surplus(Worker& self, std::byte* buffer);
  ssize_t next(std::byte* buffer, int* device);
  void serve(const Request& request, bool* was_slow);
  void note_taken(std::span<const std::byte> request,
                  Spin::Clock::time_point now);
  void note_slept();
  int wanted() const;
  void wake_dozing();

  Options options_;
  Fd ended_;
  Spin spin_;
  std::atomic<bool> stopping_{false};
  std::atomic<bool> gone_{false};
  std::atomic<int> waiting_{0};  // readers in the device, serving nothing
  std::atomic<int> reading_{0};  // readers in the device or serving
  std::atomic<int> demand_{0};   // for more readers; requests wear it off
  std::atomic<uint64_t> taken_{0};
  std::atomic<bool> deep_{false};  // nobody looks whether readers are stuck
  std::atomic<uint64_t> sequence_{1};
  mutable std::mutex mutex_;  // protects workers_, alive_, dozing_
  std::condition_variable wake_;
  std::list<std::unique_ptr<Worker>> workers_;
  int alive_ = 0;
  int dozing_ = 0;
};

}  // namespace stoplog::fs
