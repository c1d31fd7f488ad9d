// SPDX-License-Identifier: Apache-2.0
// Something for each of many things, made by a thread of its own when it is
// asked for, the last few kept.
//
//   auto files = TRY(Background<File>::create(
//       [&](size_t i, const auto& unwanted) { return load(i, unwanted); }));
//   if (auto file = files->get(7)) ...     // null: being made; poll fd()
//
// Only what was asked for last is made: a screen that has gone on needs nothing
// else. `make` runs on the thread; when unwanted() becomes true it may give up
// with nullopt. All other calls from one thread.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

#include "base/fd.h"
#include "base/result.h"
#include "base/sys_terminal.h"

namespace stoplog::cli {

template <class T>
class Background {
 public:
  using Unwanted = std::function<bool()>;
  using Make = std::function<std::optional<T>(size_t, const Unwanted&)>;

  static Result<std::unique_ptr<Background>> create(Make make) {
    Fd ready = TRY(sys::event_fd());
    return std::unique_ptr<Background>(
        new Background(std::move(make), std::move(ready)));
  }
  ~Background() {
    {
      std::lock_guard lock(mutex_);
      stop_ = true;
    }
    wake_.notify_one();
    thread_.join();
  }

  std::shared_ptr<const T> get(size_t index) {
    std::lock_guard lock(mutex_);
    if (auto kept = find(index)) return kept;
    if (making_ == index)
      wanted_.reset();
    else
      wanted_ = index;
    wake_.notify_one();
    return nullptr;
  }
  // What is there without asking for it.
  std::shared_ptr<const T> kept(size_t index) {
    std::lock_guard lock(mutex_);
    return find(index);
  }
  void keep(size_t index, std::shared_ptr<const T> made) {
    std::lock_guard lock(mutex_);
    add(index, std::move(made));
  }
  // Readable when something that get() could not give has come; drain() before
  // asking again.
  int fd() const { return ready_.get(); }
  void drain() { sys::drain_event(ready_.get()); }

 private:
  static constexpr size_t kKept = 16;
  using Entry = std::pair<size_t, std::shared_ptr<const T>>;

  Background(Make make, Fd ready)
      : make_(std::move(make)),
        ready_(std::move(ready)),
        thread_([this] { work(); }) {}

  // The next three with mutex_ held.
  std::shared_ptr<const T> find(size_t index) {
    for (auto it = cache_.begin(); it != cache_.end(); ++it) {
      if (it->first != index) continue;
      cache_.splice(cache_.begin(), cache_, it);
      return cache_.front().second;
    }
    return nullptr;
  }
  void add(size_t index, std::shared_ptr<const T> made) {
    cache_.emplace_front(index, std::move(made));
    if (cache_.size() > kKept) cache_.pop_back();
  }
  bool is_unwanted() const { return stop_ || wanted_; }

  void work() {
    std::unique_lock lock(mutex_);
    while (true) {
      wake_.wait(lock, [&] { return is_unwanted(); });
      if (stop_) return;
      making_ = std::exchange(wanted_, std::nullopt);
      size_t index = *making_;
      lock.unlock();
      std::optional<T> made = make_(index, [this] {
        std::lock_guard guard(mutex_);
        return is_unwanted();
      });
      lock.lock();
      making_.reset();
      if (made) add(index, std::make_shared<const T>(std::move(*made)));
      // Also for what was given up: it may be wanted again by now.
      sys::raise_event(ready_.get());
    }
  }

  const Make make_;
  Fd ready_;
  std::mutex mutex_;  // protects all below but thread_
  std::condition_variable wake_;
  std::list<Entry> cache_;  // newest first
  std::optional<size_t> wanted_, making_;
  bool stop_ = false;
  std::thread thread_;
};

}  // namespace stoplog::cli
