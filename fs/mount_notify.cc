// SPDX-License-Identifier: Apache-2.0
#include "fs/mount_notify.h"

#include <chrono>
#include <limits>
#include <system_error>

namespace stoplog::fs {
namespace {

// How often answers in flight are looked at. Far below the promised 100 ms.
constexpr auto kLook = std::chrono::milliseconds(2);
// And when they hang, after so many looks.
constexpr int kLooks = 100;
constexpr auto kLookAtHung = std::chrono::milliseconds(20);
// One that tells for so long may be stuck.
constexpr auto kPatience = std::chrono::milliseconds(5);

}  // namespace

Notifier::Notifier(Options options) : options_(std::move(options)) {}

Notifier::~Notifier() { stop(); }

void Notifier::start() {
  std::lock_guard lock(mutex_);
  started_ = true;
  threads_.emplace_back([this] { run(); });
}

void Notifier::stop() {
  std::vector<std::thread> threads;
  {
    std::lock_guard lock(mutex_);
    stopping_ = true;
    threads.swap(threads_);
  }
  wake_.notify_all();
  for (auto& thread : threads) thread.join();
}

void Notifier::push(std::span<const Invalidation> what) {
  if (what.empty()) return;
  {
    std::lock_guard lock(mutex_);
    if (stopping_) return;
    for (const Invalidation& one : what)
      (one.later ? later_ : queue_).push_back({one, false});
    keep_spare();
  }
  wake_.notify_one();
}

void Notifier::repeat_due() {
  if (again_.empty()) return;
  uint64_t oldest = options_.oldest_busy();
  for (auto it = again_.begin(); it != again_.end();) {
    if (oldest <= it->second.tick) {
      ++it;
      continue;
    }
    // The repetition itself needs none: nothing old is in flight any more.
    queue_.push_back({std::move(it->second.what), true});
    it = again_.erase(it);
  }
}

// Somebody must be there to see that those who tell are stuck.
void Notifier::keep_spare() {
  const int busy = telling_ + telling_later_;
  if (!started_ || stopping_ || busy < static_cast<int>(threads_.size()) ||
      busy >= options_.most_threads)
    return;
  try {
    threads_.emplace_back([this] { run(); });
  } catch (const std::system_error&) {
    // Without it all is told as well, only later.
  }
}

// Waits for those who tell now. False: they are stuck, or there are none.
bool Notifier::gets_on(std::unique_lock<std::mutex>& lock) {
  if (telling_ + telling_later_ == 0) return false;
  const uint64_t before = told_;
  return wake_.wait_for(lock, kPatience, [&] {
    return told_ != before || stopping_;
  }) && !stopping_;
}

void Notifier::run() {
  if (options_.begin) options_.begin();
  std::unique_lock lock(mutex_);
  int looks = 0;
  uint64_t mine = std::numeric_limits<uint64_t>::max();  // what I told last
  for (;;) {
    repeat_due();
    bool later = queue_.empty() && !later_.empty() && !stopping_;
    if (queue_.empty() && telling_ == 0 && again_.empty()) idle_.notify_all();
    if (queue_.empty() && !later) {
      if (stopping_) return;
      looks = again_.empty() ? 0 : looks + 1;
      if (again_.empty())
        wake_.wait(lock);
      else
        wake_.wait_for(lock, looks < kLooks ? kLook : kLookAtHung);
      continue;
    }
    looks = 0;
    if (told_ != mine && gets_on(lock)) continue;
    // What was there may have been told meanwhile.
    if (later ? later_.empty() || !queue_.empty() : queue_.empty()) continue;
    std::deque<Item>& from = later ? later_ : queue_;
    Item item = std::move(from.front());
    from.pop_front();
    int& telling = later ? telling_later_ : telling_;
    ++telling;
    if (!queue_.empty() || !later_.empty()) keep_spare();
    lock.unlock();
    uint64_t tick = options_.tick();
    options_.send(item.what);
    bool repeat = !item.repeated && options_.oldest_busy() <= tick;
    lock.lock();
    --telling;
    mine = ++told_;
    if (repeat) {
      Key key{item.what.kind, item.what.node, item.what.name};
      again_.insert_or_assign(std::move(key),
                              Again{std::move(item.what), tick});
    }
  }
}

bool Notifier::drain(int milliseconds) {
  std::unique_lock lock(mutex_);
  return idle_.wait_for(lock, std::chrono::milliseconds(milliseconds), [&] {
    return queue_.empty() && telling_ == 0 && again_.empty();
  });
}

uint64_t Notifier::told() const {
  std::lock_guard lock(mutex_);
  return told_;
}

}  // namespace stoplog::fs
