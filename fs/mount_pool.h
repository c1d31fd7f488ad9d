// SPDX-License-Identifier: Apache-2.0
// ReaderPool: the threads that read requests from /dev/fuse and serve them.
//
//   ReaderPool pool({.device = fd, .serve = [&](std::span<std::byte> r)
//   {...}}); TRY(pool.start());  ...  pool.stop();
//
// It starts small and grows by one whenever the last idle reader takes a
// request, so that a request which hangs (a dead network mount beneath) hangs
// its own caller alone; idle surplus ends by itself. The device is borrowed.
// `serve` is called from many threads and must not throw.
//
// Readers block in read(2) rather than poll(2): the kernel wakes one sleeping
// reader of a FUSE device but every poller. stop() interrupts them by a signal
// that has no other meaning (SIGRTMIN + 5).
//
// grace: an answer begun before tick() may carry what was true before it.
//   uint64_t t = pool.tick(); ... if (pool.oldest_busy() > t) all are out.
#pragma once

#include <atomic>
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

namespace stoplog::fs {

class ReaderPool {
 public:
  struct Options {
    int device = -1;
    size_t buffer = (1u << 20) + (64u << 10);
    int first = 2;  // readers at the start, and idle ones that are kept
    int most = 64;  // a reader costs 12 KiB until it serves a large write
    std::function<void(std::span<std::byte>)> serve;
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
  uint64_t oldest_busy() const;
  int threads() const;

 private:
  struct Worker {
    std::thread thread;
    std::atomic<uint64_t> since{0};  // 0: idle
    std::atomic<bool> done{false};
  };
  Status spawn();  // mutex_ held
  void grow();
  void run(Worker& self);
  void work(Worker& self);
  bool retire(Worker& self);

  Options options_;
  Fd ended_;
  std::atomic<bool> stopping_{false};
  std::atomic<bool> gone_{false};
  std::atomic<int> idle_{0};
  std::atomic<uint64_t> sequence_{1};
  mutable std::mutex mutex_;  // protects workers_ and alive_
  std::list<std::unique_ptr<Worker>> workers_;
  int alive_ = 0;
};

}  // namespace stoplog::fs
