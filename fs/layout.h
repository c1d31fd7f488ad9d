// SPDX-License-Identifier: Apache-2.0
// Every name that fs puts on disk, beneath one draft's directory:
//
//   journal/00000001        generation files, the highest complete one counts
//   journal/00000002.new    a generation being written; removed at open
//   journal/newest          a symlink whose target names the newest generation
//   segments/00000001       content, append-only but for open extents
//
// docs/FORMAT.md says what is inside them.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace stoplog::fs::layout {

inline constexpr const char* kJournalDir = "journal";
inline constexpr const char* kSegmentDir = "segments";
inline constexpr const char* kNewSuffix = ".new";
inline constexpr const char* kNewest = "newest";
inline constexpr mode_t kDirMode = 0700;
inline constexpr mode_t kFileMode = 0600;

inline std::string generation_name(uint32_t number) {
  return fmt::format("{:08x}", number);
}
inline std::string segment_name(uint32_t number) {
  return fmt::format("{:08x}", number);
}
// The number of a generation or segment file; absent for any other name.
inline std::optional<uint32_t> parse_number(std::string_view name) {
  if (name.size() != 8) return std::nullopt;
  uint32_t number = 0;
  for (char c : name) {
    uint32_t digit;
    if (c >= '0' && c <= '9')
      digit = static_cast<uint32_t>(c - '0');
    else if (c >= 'a' && c <= 'f')
      digit = static_cast<uint32_t>(c - 'a' + 10);
    else
      return std::nullopt;
    number = number << 4 | digit;
  }
  return number;
}

}  // namespace stoplog::fs::layout
