// SPDX-License-Identifier: Apache-2.0
// A bounded LRU of open fds, so that a tree of any size costs a fixed number
// of them (20,000 is a common hard limit). A handle given out keeps its fd
// open after eviction until it is dropped; the bound holds for idle fds.
//
//   FdHandle fd = cache.find(key);
//   if (fd) return fd;
//   FdCache::Opening opening(cache, key);  // before it is known what to open
//   return cache.put(opening, TRY(open...));
//
// What was dropped or cleared while it was being opened does not enter: it may
// be what stood there before.
//
// Any thread; a leaf lock.
#pragma once

#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "base/fd.h"

namespace stoplog::fs {

using FdHandle = std::shared_ptr<const Fd>;

class FdCache {
 public:
  explicit FdCache(size_t capacity) : capacity_(capacity) {}
  class Opening {
   public:
    Opening(FdCache& cache, uint64_t key);
    ~Opening();
    Opening(const Opening&) = delete;
    Opening& operator=(const Opening&) = delete;

   private:
    friend class FdCache;
    FdCache& cache_;
    const uint64_t key_;
    bool stale_ = false;  // by the cache's lock
  };
  FdHandle find(uint64_t key);
  // The fd now cached under its key: one that was there first, or the one
  // given; of a stale opening that is given back alone.
  FdHandle put(const Opening& opening, Fd fd);
  FdHandle put(const Opening& opening, FdHandle fd);
  void drop(uint64_t key);
  void clear();
  size_t size() const;
  // A key that no other caller of this function has: for what has no number.
  static uint64_t fresh_key();

 private:
  struct Slot {
    uint64_t key;
    FdHandle fd;
  };
  const size_t capacity_;
  mutable std::mutex mutex_;        // protects the following; a leaf
  std::vector<Opening*> openings_;  // as many as threads open just now
  std::list<Slot> order_;           // most recent first
  std::unordered_map<uint64_t, std::list<Slot>::iterator> index_;
};

}  // namespace stoplog::fs
