// SPDX-License-Identifier: Apache-2.0
#include "draft/jail_ids.h"

#include <algorithm>
#include <charconv>

namespace stoplog::draft {
namespace {

constexpr uint64_t kFirst = 1'900'000'000, kCount = 100'000'000;
constexpr uint64_t kFewest = 4096;

// The next number of a line, or nothing.
std::optional<uint64_t> take_number(std::string_view& text) {
  while (text.starts_with(' ')) text.remove_prefix(1);
  uint64_t value = 0;
  const char* end = text.data() + text.size();
  auto [at, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc() || value > UINT32_MAX) return std::nullopt;
  text.remove_prefix(static_cast<size_t>(at - text.data()));
  return value;
}

}  // namespace

std::optional<uint32_t> jail_id(std::string_view id_map, uint64_t hash) {
  uint64_t first = 0, count = 0;
  while (!id_map.empty()) {
    std::string_view line = id_map.substr(0, id_map.find('\n'));
    id_map.remove_prefix(std::min(line.size() + 1, id_map.size()));
    auto inside = take_number(line);
    auto outside = take_number(line);
    auto length = take_number(line);
    if (!inside || !outside || !length) continue;
    if (*inside <= kFirst && *inside + *length >= kFirst + kCount)
      return static_cast<uint32_t>(kFirst + hash % kCount);
    if (*length > count) {
      first = *inside;
      count = *length;
    }
  }
  if (count < kFewest) return std::nullopt;
  return static_cast<uint32_t>(first + count / 4 * 3 + hash % (count / 8));
}

}  // namespace stoplog::draft
