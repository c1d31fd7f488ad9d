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

FdCache::Opening::Opening(FdCache& cache, uint64_t key)
    : cache_(cache), key_(key) {
  std::lock_guard lock(cache_.mutex_);
  cache_.openings_.push_back(this);
}

FdCache::Opening::~Opening() {
  std::lock_guard lock(cache_.mutex_);
  std::erase(cache_.openings_, this);
}

FdHandle FdCache::put(const Opening& opening, Fd fd) {
  return put(opening, std::make_shared<const Fd>(std::move(fd)));
}

FdHandle FdCache::put(const Opening& opening, FdHandle handle) {
  FdHandle evicted;  // closed after the lock: close(2) can block
  std::lock_guard lock(mutex_);
  if (auto it = index_.find(opening.key_); it != index_.end())
    return it->second->fd;
  if (opening.stale_) return handle;
  auto it = index_.try_emplace(opening.key_).first;
  order_.push_front({opening.key_, handle});
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
  for (Opening* opening : openings_)
    if (opening->key_ == key) opening->stale_ = true;
  auto it = index_.find(key);
  if (it == index_.end()) return;
  dropped = std::move(it->second->fd);
  order_.erase(it->second);
  index_.erase(it);
}

void FdCache::clear() {
  std::list<Slot> dropped;
  std::lock_guard lock(mutex_);
  for (Opening* opening : openings_) opening->stale_ = true;
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
