// SPDX-License-Identifier: Apache-2.0
// Sizes and durations as people type them and read them.
//
//   parse_size("512M") == 536870912      print_size(1610612736) == "1.5G"
//   parse_duration("1h30m") == 90min     print_duration(90s) == "1m30s"
//
// Units of size are powers of 1024: K M G T P, either case, "B" or "iB" may
// follow. Durations are ms s m h d and their sums in falling order. A number
// without a unit is bytes; a duration must have one (90 what?). Overflow,
// signs, blanks and trailing text are errors of Code::kInvalid that say what
// was expected. Pure functions.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"

namespace stoplog {

using Millis = std::chrono::milliseconds;

Result<uint64_t> parse_size(std::string_view text);
// At most one decimal, rounded: for people. "0B", "999B", "1.5G".
std::string print_size(uint64_t bytes);
// The largest unit that divides it: parse_size gives the same number back.
std::string print_size_exact(uint64_t bytes);

Result<Millis> parse_duration(std::string_view text);
// "500ms", "12.3s", "1m30s", "1h30m", "2d4h": the two largest units.
std::string print_duration(Millis duration);
// All units that are not zero: parse_duration gives the same back.
std::string print_duration_exact(Millis duration);

}  // namespace stoplog
