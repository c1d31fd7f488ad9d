// SPDX-License-Identifier: Apache-2.0
// What became of a base in the real tree since the draft saw it: a sentence
// with what and when, or nothing. A small file that was only touched, or
// written again with what it had, did not drift; of a large one, or one whose
// base is not kept, time and size decide.
#pragma once

#include "fs/real.h"

namespace stoplog::fs {

// Nothing there: nullopt.
Result<std::optional<sys::Stat>> stat_beneath(int root,
                                              const std::string& path);

std::string drift_text(std::string_view what, const timespec& when);
// `now` is what stands at `path` beneath `root`.
std::optional<std::string> drift_of(const SharedRoot& root, const RelPath& path,
                                    const NodeState& before,
                                    const sys::Stat& now);

}  // namespace stoplog::fs
