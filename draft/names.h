// SPDX-License-Identifier: Apache-2.0
// Ids and names of drafts. Ids are 8 digits of 32 (no i, l, o, u: they are read
// aloud); friendly names are two words, "calm-heron". Pure but for getrandom.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "fs/tree_types.h"

namespace stoplog::draft {

inline constexpr size_t kIdLength = 8;
inline constexpr std::string_view kIdDigits =
    "0123456789abcdefghjkmnpqrstvwxyz";

Result<std::string> random_id();
Result<std::string> friendly_name();

// What a mark is called: "@4", "@4.", a snapshot's name; "" when it has none.
std::string mark_name(const fs::Mark& mark);

}  // namespace stoplog::draft
