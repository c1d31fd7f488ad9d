// SPDX-License-Identifier: Apache-2.0
// What a draft keeps of its history, and what giving back the rest freed.
//
//   GcReport report = TRY(tree->gc({.max_age = 30 * 86400}));
//
// Marks that the policy lets go are forgotten first (they can no longer be
// rolled back to); then goes whatever no mark, no open file and not the
// present state refers to: generations of the journal, whole segments, and
// ranges of segments that no fork shares.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <vector>

#include "fs/tree_types.h"

namespace stoplog::fs {

struct GcPolicy {
  std::optional<uint64_t> max_age{};    // seconds
  std::optional<uint64_t> max_bytes{};  // of content, the present included
  bool dry_run = false;
  // Marks that a reader took for a moment go after these seconds, unless it
  // stands there still.
  int64_t barrier_age = 3600;
  std::set<Position> stood_on{};  // added by Tree::gc
};

struct GcReport {
  uint64_t marks = 0;        // forgotten
  uint64_t generations = 0;  // removed
  uint64_t segments = 0;     // removed
  uint64_t bytes = 0;        // given back to the disk, or would be
  uint64_t kept_bytes = 0;   // of content that is still needed
};

// Positions of the marks that stay. Never let go: names that people gave, the
// newest mark, those of the last command, and the mark of a commit while an
// older one stays (its view needs to know of the commit), and those that a
// reader stands on. `drop` more of the oldest go.
std::set<Position> marks_to_keep(const std::vector<Mark>& marks,
                                 const GcPolicy& policy, const timespec& now,
                                 size_t drop = 0);

}  // namespace stoplog::fs
