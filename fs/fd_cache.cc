// SPDX-License-Identifier: Apache-2.0
#include "fs/fd_cache.h"

#include <atomic>

namespace stoplog::fs {

FdHandle FdCache::find(uint64_t key) {
  std::lock_guard lock(mutex_);
  auto it = index_.find(key);
  if (it == index_.end()) return nullptr;
  order_.splice(order_.begin(), order_, it->second);
  return it->second->fd;
}

FdHandle FdCache::put(uint64_t key, Fd fd) {
  auto handle = std::make_shared<const Fd>(std::move(fd));
  FdHandle evicted;  // closed after the lock: close(2) can block
  std::lock_guard lock(mutex_);
  auto [it, added] = index_.try_emplace(key);
  if (!added) return it->second->fd;
  order_.push_front({key, handle});
  it->second = order_.begin();
  if (order_.size() > capacity_) {
    evicted = std::move(order_.back().fd);
    index_.erase(order_.back().key);
    order_.pop_back();
  }
  return handle;
}

void FdCache::drop(uint64_t key) {
  FdHandle dropped;
  std::lock_guard lock(mutex_);
  auto it = index_.find(key);
  if (it == index_.end()) return;
  dropped = std::move(it->second->fd);
  order_.erase(it->second);
  index_.erase(it);
}

void FdCache::clear() {
  std::list<Slot> dropped;
  std::lock_guard lock(mutex_);
  dropped.swap(order_);
  index_.clear();
}

size_t FdCache::size() const {
  std::lock_guard lock(mutex_);
  return order_.size();
}

uint64_t FdCache::fresh_key() {
  static std::atomic<uint64_t> next{1};
  return next++;
}

}  // namespace stoplog::fs
