// SPDX-License-Identifier: Apache-2.0
// Which processors there are and could be, and keeping a thread on one.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace stoplog::sys {

struct Processors {
  size_t possible = 0;           // that the kernel made room for
  std::vector<uint16_t> online;  // ascending
};
Result<Processors> processors();
// Pure: "0-3,8\n"; empty where it is not such a list.
std::vector<uint16_t> parse_processors(std::string_view list);
// The calling thread. EINVAL where it may not be there.
Status bind_thread(uint16_t processor);

}  // namespace stoplog::sys
