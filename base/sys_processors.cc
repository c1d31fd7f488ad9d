// SPDX-License-Identifier: Apache-2.0
#include "base/sys_processors.h"

#include <fcntl.h>
#include <sched.h>

#include <charconv>

#include "base/sys_file.h"

namespace stoplog::sys {
namespace {

constexpr uint16_t kMost = 8192;

// Takes a number from the front of `text`.
bool take(std::string_view& text, uint16_t* out) {
  auto [end, error] =
      std::from_chars(text.data(), text.data() + text.size(), *out);
  if (error != std::errc() || *out >= kMost) return false;
  text.remove_prefix(static_cast<size_t>(end - text.data()));
  return true;
}

}  // namespace

std::vector<uint16_t> parse_processors(std::string_view list) {
  std::vector<uint16_t> out;
  while (!list.empty() && list.back() == '\n') list.remove_suffix(1);
  while (!list.empty()) {
    uint16_t first = 0;
    if (!take(list, &first)) return {};
    uint16_t last = first;
    if (list.starts_with('-')) {
      list.remove_prefix(1);
      if (!take(list, &last) || last < first) return {};
    }
    if (!out.empty() && first <= out.back()) return {};
    for (uint16_t i = first; i <= last; ++i) out.push_back(i);
    if (list.empty()) break;
    if (list.front() != ',' || list.size() == 1) return {};
    list.remove_prefix(1);
  }
  return out;
}

Result<Processors> processors() {
  constexpr uint64_t kLimit = 64u << 10;
  const std::string place = "/sys/devices/system/cpu/";
  auto possible =
      parse_processors(TRY(read_file(AT_FDCWD, place + "possible", kLimit)));
  auto online =
      parse_processors(TRY(read_file(AT_FDCWD, place + "online", kLimit)));
  if (possible.empty() || online.empty())
    return fail(Code::kUnsupported, "the processors are not listed");
  return Processors{.possible = possible.size(), .online = std::move(online)};
}

Status bind_thread(uint16_t processor) {
  // Larger than cpu_set_t where there are more than 1,024.
  cpu_set_t* set = CPU_ALLOC(kMost);
  if (set == nullptr) return fail_errno(ENOMEM);
  size_t size = CPU_ALLOC_SIZE(kMost);
  CPU_ZERO_S(size, set);
  CPU_SET_S(processor, size, set);
  int bound = ::sched_setaffinity(0, size, set);
  int error = errno;
  CPU_FREE(set);
  if (bound < 0) return fail_errno(error);
  return {};
}

}  // namespace stoplog::sys
