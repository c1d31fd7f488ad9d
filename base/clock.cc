// SPDX-License-Identifier: Apache-2.0
#include "base/clock.h"

namespace stoplog {
namespace {

constexpr int64_t kNanos = 1'000'000'000;

int64_t to_ns(timespec t) {
  return static_cast<int64_t>(t.tv_sec) * kNanos + t.tv_nsec;
}

class RealClock final : public Clock {
 public:
  timespec now() const override { return read(CLOCK_REALTIME); }
  std::chrono::nanoseconds steady() const override {
    return std::chrono::nanoseconds(to_ns(read(CLOCK_MONOTONIC)));
  }

 private:
  static timespec read(clockid_t id) {
    timespec t{};
    ::clock_gettime(id, &t);
    return t;
  }
};

// A fixed number of digits at the front of `text`, or -1.
int take_digits(std::string_view& text, size_t count) {
  if (text.size() < count) return -1;
  int value = 0;
  for (size_t i = 0; i < count; ++i) {
    if (text[i] < '0' || text[i] > '9') return -1;
    value = value * 10 + (text[i] - '0');
  }
  text.remove_prefix(count);
  return value;
}

bool take_char(std::string_view& text, char c) {
  if (text.empty() || text[0] != c) return false;
  text.remove_prefix(1);
  return true;
}

// "Z" or "+hh:mm": seconds east of UTC.
bool take_offset(std::string_view& text, int& seconds) {
  if (take_char(text, 'Z')) return true;
  int sign = take_char(text, '+') ? 1 : take_char(text, '-') ? -1 : 0;
  if (sign == 0) return false;
  int hours = take_digits(text, 2);
  bool colon = take_char(text, ':');
  int minutes = take_digits(text, 2);
  seconds = sign * (hours * 3600 + minutes * 60);
  return colon && hours >= 0 && hours < 24 && minutes >= 0 && minutes < 60;
}

bool take_fraction(std::string_view& text, long& nanos) {
  if (!take_char(text, '.')) return true;
  long unit = kNanos / 10;
  size_t digits = 0;
  for (; !text.empty() && text[0] >= '0' && text[0] <= '9'; ++digits) {
    nanos += (text[0] - '0') * unit;
    unit /= 10;
    text.remove_prefix(1);
  }
  return digits > 0;
}

std::string print(const tm& t, char separator) {
  return fmt::format("{:04}-{:02}-{:02}{}{:02}:{:02}:{:02}", t.tm_year + 1900,
                     t.tm_mon + 1, t.tm_mday, separator, t.tm_hour, t.tm_min,
                     t.tm_sec);
}

}  // namespace

const Clock& Clock::real() {
  static const RealClock clock;
  return clock;
}

ManualClock::ManualClock(timespec now) : wall_ns_(to_ns(now)) {}

timespec ManualClock::now() const {
  int64_t ns = wall_ns_.load();
  return {ns / kNanos, ns % kNanos};
}

std::chrono::nanoseconds ManualClock::steady() const {
  return std::chrono::nanoseconds(steady_ns_.load());
}

void ManualClock::advance(std::chrono::nanoseconds by) {
  wall_ns_ += by.count();
  steady_ns_ += by.count();
}

void ManualClock::set_now(timespec now) { wall_ns_ = to_ns(now); }

std::string rfc3339(timespec time) {
  tm t{};
  ::gmtime_r(&time.tv_sec, &t);
  return fmt::format("{}.{:03}Z", print(t, 'T'), time.tv_nsec / 1'000'000);
}

std::string local_time(timespec time) {
  tm t{};
  ::localtime_r(&time.tv_sec, &t);
  return print(t, ' ');
}

Result<timespec> parse_rfc3339(std::string_view text) {
  std::string_view rest = text;
  tm t{};
  bool ok = (t.tm_year = take_digits(rest, 4) - 1900) >= -1900 &&
            take_char(rest, '-') &&
            (t.tm_mon = take_digits(rest, 2) - 1) >= 0 && t.tm_mon < 12 &&
            take_char(rest, '-') && (t.tm_mday = take_digits(rest, 2)) >= 1 &&
            t.tm_mday <= 31 && (take_char(rest, 'T') || take_char(rest, ' ')) &&
            (t.tm_hour = take_digits(rest, 2)) >= 0 && t.tm_hour < 24 &&
            take_char(rest, ':') && (t.tm_min = take_digits(rest, 2)) >= 0 &&
            t.tm_min < 60 && take_char(rest, ':') &&
            (t.tm_sec = take_digits(rest, 2)) >= 0 && t.tm_sec <= 60;
  timespec out{};
  int offset = 0;
  ok = ok && take_fraction(rest, out.tv_nsec) && take_offset(rest, offset) &&
       rest.empty();
  if (!ok)
    return fail(Code::kInvalid, "not a time such as 2026-01-31T12:00:00Z");
  out.tv_sec = ::timegm(&t) - offset;
  return out;
}

}  // namespace stoplog
