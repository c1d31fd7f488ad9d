// SPDX-License-Identifier: Apache-2.0
#include "base/units.h"

#include <array>
#include <charconv>
#include <limits>

namespace stoplog {
namespace {

constexpr std::string_view kSizeUnits = "BKMGTP";

struct TimeUnit {
  std::string_view name;
  int64_t ms;
};
constexpr std::array<TimeUnit, 5> kTimeUnits = {{{"d", 86'400'000},
                                                 {"h", 3'600'000},
                                                 {"m", 60'000},
                                                 {"s", 1000},
                                                 {"ms", 1}}};

bool is_digit(char c) { return c >= '0' && c <= '9'; }

// Takes the digits at the front of `text`.
bool take_number(std::string_view& text, uint64_t& value) {
  auto [end, error] =
      std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{}) return false;
  text.remove_prefix(static_cast<size_t>(end - text.data()));
  return true;
}

std::unexpected<Error> bad_size() {
  return fail(Code::kInvalid, "not a size such as 512M or 2G");
}
std::unexpected<Error> bad_duration() {
  return fail(Code::kInvalid, "not a duration such as 90s, 10m or 1h30m");
}

// "K", "KB", "KiB" or "B", either case: the power of 1024, or -1.
int size_power(std::string_view unit) {
  if (unit.empty()) return 0;
  auto upper = [](char c) {
    return c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
  };
  size_t power = kSizeUnits.find(upper(unit[0]));
  if (power == std::string_view::npos) return -1;
  std::string_view rest = unit.substr(1);
  bool plain = rest.empty();
  bool suffix = power > 0 && (rest == "B" || rest == "b" || rest == "iB" ||
                              rest == "ib" || rest == "IB");
  return plain || suffix ? static_cast<int>(power) : -1;
}

}  // namespace

Result<uint64_t> parse_size(std::string_view text) {
  uint64_t whole = 0;
  if (!take_number(text, whole)) return bad_size();
  uint64_t tenths = 0;
  if (text.size() >= 2 && text[0] == '.' && is_digit(text[1])) {
    tenths = static_cast<uint64_t>(text[1] - '0');
    text.remove_prefix(2);
    if (!text.empty() && is_digit(text[0]))
      return fail(Code::kInvalid, "a size has at most one decimal");
  }
  int power = size_power(text);
  if (power < 0 || (tenths != 0 && power == 0)) return bad_size();
  uint64_t unit = uint64_t{1} << (10 * power);
  uint64_t bytes = 0;
  if (__builtin_mul_overflow(whole, unit, &bytes) ||
      __builtin_add_overflow(bytes, tenths * (unit / 10), &bytes))
    return fail(Code::kInvalid, "the size is too large");
  return bytes;
}

std::string print_size(uint64_t bytes) {
  size_t power = 0;
  uint64_t unit = 1;
  // 1023.95K would be rounded to "1024.0K": the next unit begins there.
  while (power + 1 < kSizeUnits.size() &&
         bytes / unit * 100 + bytes % unit * 100 / unit >= 102'395) {
    unit *= 1024;
    ++power;
  }
  if (power == 0 && bytes >= 1024) {
    unit = 1024;
    power = 1;
  }
  uint64_t whole = bytes / unit;
  uint64_t tenths = (bytes % unit * 10 + unit / 2) / unit;
  if (tenths == 10) {
    ++whole;
    tenths = 0;
  }
  if (tenths == 0 || power == 0)
    return fmt::format("{}{}", whole, kSizeUnits[power]);
  return fmt::format("{}.{}{}", whole, tenths, kSizeUnits[power]);
}

std::string print_size_exact(uint64_t bytes) {
  size_t power = 0;
  while (bytes != 0 && bytes % 1024 == 0 && power + 1 < kSizeUnits.size()) {
    bytes /= 1024;
    ++power;
  }
  return fmt::format("{}{}", bytes, kSizeUnits[power]);
}

Result<Millis> parse_duration(std::string_view text) {
  int64_t total = 0;
  int64_t last = std::numeric_limits<int64_t>::max();
  if (text.empty()) return bad_duration();
  while (!text.empty()) {
    uint64_t number = 0;
    if (!take_number(text, number)) return bad_duration();
    size_t length = 0;
    while (length < text.size() && !is_digit(text[length])) ++length;
    std::string_view name = text.substr(0, length);
    text.remove_prefix(length);
    int64_t unit = 0;
    for (const TimeUnit& u : kTimeUnits)
      if (u.name == name) unit = u.ms;
    if (unit == 0 || unit >= last) return bad_duration();
    last = unit;
    int64_t part = 0;
    if (__builtin_mul_overflow(number, unit, &part) ||
        __builtin_add_overflow(total, part, &total))
      return fail(Code::kInvalid, "the duration is too long");
  }
  return Millis(total);
}

std::string print_duration(Millis duration) {
  int64_t ms = duration.count();
  if (ms < 0) return "-" + print_duration(-duration);
  if (ms < 1000) return fmt::format("{}ms", ms);
  if (ms < 60'000) {
    int64_t tenths = ms / 100;
    return tenths % 10 == 0 ? fmt::format("{}s", tenths / 10)
                            : fmt::format("{}.{}s", tenths / 10, tenths % 10);
  }
  size_t first = 0;
  while (ms < kTimeUnits[first].ms) ++first;
  const TimeUnit& large = kTimeUnits[first];
  const TimeUnit& small = kTimeUnits[first + 1];
  int64_t rest = ms % large.ms / small.ms;
  std::string out = fmt::format("{}{}", ms / large.ms, large.name);
  return rest == 0 ? out : fmt::format("{}{}{}", out, rest, small.name);
}

std::string print_duration_exact(Millis duration) {
  int64_t ms = duration.count();
  if (ms == 0) return "0s";
  std::string out;
  for (const TimeUnit& unit : kTimeUnits) {
    if (ms >= unit.ms) out += fmt::format("{}{}", ms / unit.ms, unit.name);
    ms %= unit.ms;
  }
  return out;
}

}  // namespace stoplog
