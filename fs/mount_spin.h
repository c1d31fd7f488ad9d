// SPDX-License-Identifier: Apache-2.0
// Spin: whether a reader asks for the next request again and again for some
// microseconds before it sleeps.
//
//   if (spin.begin()) { bool found = poll for Spin::kTime...; spin.end(found);
//   }
//   ... a request is here: spin.taken(now);
//
// A program that works through files sends its next request within
// microseconds of the last answer, and to wake a sleeping reader often takes
// longer than to serve it; at other times the scheduler has put the two on one
// processor, and sleeping is faster. Which it is changes with the machine and
// the program, so both are tried by turns for kTrial requests and the faster
// one stays for kStay.
//
// One reader at a time spins. A miss costs kTime of a processor: after each
// one in a row twice as many sleeps go without (up to 64), and the first hit
// forgives them all. Thread safe.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>

namespace stoplog::fs {

class Spin {
 public:
  using Clock = std::chrono::steady_clock;
  static constexpr std::chrono::microseconds kTime{30};
  static constexpr std::chrono::microseconds kLongest{150};
  static constexpr int kMostMisses = 6;
  static constexpr int kTrial = 256;
  static constexpr int kStay = 8192;

  // True: the caller spins now, and says end().
  bool begin() {
    if (!on_.load(std::memory_order_relaxed)) return false;
    if (spinning_.test_and_set(std::memory_order_acquire)) return false;
    if (skip_ == 0) return true;
    --skip_;
    spinning_.clear(std::memory_order_release);
    return false;
  }

  void end(bool found) {
    misses_ = found ? 0 : std::min(misses_ + 1, kMostMisses);
    skip_ = found ? 0 : 1 << misses_;
    spinning_.clear(std::memory_order_release);
  }

  void taken(Clock::time_point now) {
    if (counting_.test_and_set(std::memory_order_acquire)) return;
    // A longer pause is the program's own and says nothing.
    spent_ += std::min<Clock::duration>(now - last_, kLongest);
    last_ = now;
    if (++count_ == (phase_ == Phase::kStay ? kStay : kTrial)) turn();
    counting_.clear(std::memory_order_release);
  }

 private:
  enum class Phase { kWith, kWithout, kStay };

  void turn() {
    switch (phase_) {
      case Phase::kWith:
        with_ = spent_;
        on_ = false;
        phase_ = Phase::kWithout;
        break;
      case Phase::kWithout:
        on_ = with_ < spent_;
        phase_ = Phase::kStay;
        break;
      case Phase::kStay:
        on_ = true;
        phase_ = Phase::kWith;
        break;
    }
    spent_ = {};
    count_ = 0;
  }

  std::atomic<bool> on_{true};
  std::atomic_flag spinning_;
  int misses_ = 0;  // both by spinning_
  int skip_ = 0;
  std::atomic_flag counting_;  // protects what follows
  Phase phase_ = Phase::kWith;
  int count_ = 0;
  Clock::time_point last_{};
  Clock::duration spent_{}, with_{};
};

}  // namespace stoplog::fs
