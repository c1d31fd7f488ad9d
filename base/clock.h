// SPDX-License-Identifier: Apache-2.0
// Time as a thing that is handed in, so that tests can set it.
//
//   void record(const Clock& clock) { rfc3339(clock.now()); }
//   record(Clock::real());
//   ManualClock clock({1700000000, 0}); clock.advance(Millis(1500));
//
// now() is the wall clock: for people and for records, it can jump. steady() is
// nanoseconds that only grow: for measuring and for deadlines. Both clocks may
// be read from any thread; ManualClock too.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <ctime>
#include <string>
#include <string_view>

#include "base/result.h"

namespace stoplog {

class Clock {
 public:
  virtual ~Clock() = default;
  virtual timespec now() const = 0;
  virtual std::chrono::nanoseconds steady() const = 0;
  static const Clock& real();
};

class ManualClock final : public Clock {
 public:
  explicit ManualClock(timespec now = {});
  timespec now() const override;
  std::chrono::nanoseconds steady() const override;
  // Both clocks move on.
  void advance(std::chrono::nanoseconds by);
  // The wall clock jumps, as after NTP or suspend; steady() does not.
  void set_now(timespec now);

 private:
  std::atomic<int64_t> wall_ns_;
  std::atomic<int64_t> steady_ns_{0};
};

// UTC with milliseconds: "2026-11-16T07:00:00.123Z". Sorts as text until 9999.
std::string rfc3339(timespec time);
// What rfc3339() prints, with any number of decimals or none, and "Z" or an
// offset such as +02:00.
Result<timespec> parse_rfc3339(std::string_view text);
// Local time for people: "2026-11-16 08:00:00".
std::string local_time(timespec time);

}  // namespace stoplog
