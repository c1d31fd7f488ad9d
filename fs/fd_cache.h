// SPDX-License-Identifier: Apache-2.0
// A bounded LRU of open fds, so that a tree of any size costs a fixed number
// of them (20,000 is a common hard limit). A handle given out keeps its fd
// open after eviction until it is dropped; the bound holds for idle fds.
//
//   FdHandle fd = cache.find(key);
//   if (!fd) fd = cache.put(key, TRY(open...));
//
// Any thread; a leaf lock.
#pragma once

#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <unordered_map>

#include "base/fd.h"

namespace stoplog::fs {

using FdHandle = std::shared_ptr<const Fd>;

class FdCache {
 public:
  explicit FdCache(size_t capacity) : capacity_(capacity) {}
  FdHandle find(uint64_t key);
  // The fd now cached under `key`: the one given, or one that was there first.
  FdHandle put(uint64_t key, Fd fd);
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
  mutable std::mutex mutex_;
  std::list<Slot> order_;  // most recent first
  std::unordered_map<uint64_t, std::list<Slot>::iterator> index_;
};

}  // namespace stoplog::fs
