// SPDX-License-Identifier: Apache-2.0
// How many net changes a draft holds, without hashing more than is needed to
// know; unset when it cannot be read. `commands` gets how many were run.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cli/context.h"
#include "draft/store.h"

namespace stoplog::cli {

// The paths that a draft changes; absent when it cannot be read.
std::optional<std::vector<RelPath>> held_paths(Context& context,
                                               const draft::Draft& draft,
                                               uint32_t* commands);
std::optional<uint64_t> count_changes(Context& context,
                                      const draft::Draft& draft,
                                      uint32_t* commands = nullptr);
// The changed paths of the current draft, relative to the current directory:
// for completion. Empty when anything is wrong.
std::vector<std::string> changed_paths(Context& context);

}  // namespace stoplog::cli
