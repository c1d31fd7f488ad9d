// SPDX-License-Identifier: Apache-2.0
// OneEach: of those who come with the same number one goes on at a time; who
// comes with another waits for none of them.
//
//   OneEach all;
//   { OneEach::Turn turn(all, id); ... }   // waits for its turn
//
// For work that may hang, where a fixed set of mutexes by a hash of the number
// would let it hang others. Any thread.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <unordered_set>

namespace stoplog::fs {

class OneEach {
 public:
  class Turn {
   public:
    Turn(OneEach& all, uint64_t number) : all_(all), number_(number) {
      std::unique_lock lock(all_.mutex_);
      all_.left_.wait(lock, [&] { return all_.busy_.insert(number_).second; });
    }
    ~Turn() {
      {
        std::lock_guard lock(all_.mutex_);
        all_.busy_.erase(number_);
      }
      all_.left_.notify_all();
    }
    Turn(const Turn&) = delete;
    Turn& operator=(const Turn&) = delete;

   private:
    OneEach& all_;
    const uint64_t number_;
  };

 private:
  std::mutex mutex_;  // a leaf
  std::condition_variable left_;
  std::unordered_set<uint64_t> busy_;  // by mutex_
};

}  // namespace stoplog::fs
