// SPDX-License-Identifier: Apache-2.0
// What is left of TempFiles (base/temp_file.h) whose process died.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/result.h"

namespace stoplog {

bool is_temp_name(std::string_view name);

// Removes everything under such a name in `dir` that nobody has written to for
// `idle` seconds.
Status sweep_temp_files(int dir, int64_t idle);

}  // namespace stoplog
