// SPDX-License-Identifier: Apache-2.0
// Notifier: tells the kernel what it must ask again.
//
//   notifier.push(invalidations);   any thread, never blocks
//   notifier.drain();               waits until all pushed so far were told,
//                                   but for what may come later
//
// Telling can block (the kernel takes the directory's lock, or waits for a page
// that is being read), so it happens in threads of its own, never in a reader
// and never under a lock. One thread tells as long as it gets on; when it does
// not, another takes its place, up to a bound: a page that waits for a hung
// lower file delays nobody else.
//
// What is told while older requests are being served is told once more when
// those have been answered: their answers may carry the old state, and a cached
// old answer would otherwise stay for ever.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <span>
#include <thread>
#include <vector>

#include "fs/tree_types.h"

namespace stoplog::fs {

class Notifier {
 public:
  struct Options {
    // Called first in each thread; may be null.
    std::function<void()> begin;
    // Writes one notification; blocks as the kernel pleases.
    std::function<void(const Invalidation&)> send;
    // As ReaderPool has them.
    std::function<uint64_t()> tick;
    std::function<uint64_t()> oldest_busy;
    int most_threads = 64;
  };
  explicit Notifier(Options options);
  ~Notifier();
  Notifier(const Notifier&) = delete;
  Notifier& operator=(const Notifier&) = delete;

  void start();
  // Tells what is queued, then ends. Readers must still be serving.
  void stop();
  void push(std::span<const Invalidation> what);
  // False: still not told after `milliseconds`.
  bool drain(int milliseconds);
  uint64_t told() const;

 private:
  struct Key {
    Invalidation::Kind kind;
    NodeId node;
    std::string name;
    auto operator<=>(const Key&) const = default;
  };
  struct Item {
    Invalidation what;
    bool repeated = false;
  };
  struct Again {
    Invalidation what;
    uint64_t tick;
  };
  void run();
  // With mutex_ held:
  void repeat_due();
  void keep_spare();
  bool gets_on(std::unique_lock<std::mutex>& lock);

  Options options_;
  mutable std::mutex mutex_;  // protects all below; never held while telling
  std::condition_variable wake_;
  std::condition_variable idle_;
  std::deque<Item> queue_;
  std::deque<Item> later_;  // when the queue is empty; nobody waits for these
  std::map<Key, Again> again_;  // to be told once more; one each, so bounded
  std::vector<std::thread> threads_;
  int telling_ = 0, telling_later_ = 0;
  uint64_t told_ = 0;
  bool started_ = false;
  bool stopping_ = false;
};

}  // namespace stoplog::fs
