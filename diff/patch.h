// SPDX-License-Identifier: Apache-2.0
// The change set as a patch in git's extended format: `git apply --binary` of
// it on the base gives the draft's tree, byte for byte, as far as git can say
// it (git knows no empty directories, no special files, no owners, and only
// 644 and 755 of modes).
//
// Streams to `sink` in order of path; memory is bounded by two texts of
// kTextLimit a thread. Content beyond max_literal is named with git's "Binary
// files differ" and reported in PatchReport: never left out silently.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "diff/change_set.h"

namespace stoplog::diff {

struct PatchOptions {
  unsigned context = 3;
  std::vector<RelPath> paths;         // these and what lies beneath; empty: all
  bool ignored = false;               // ignored files too
  bool git = false;                   // the inside of .git too
  uint64_t max_literal = 1ull << 30;  // git refuses patches beyond 1 GiB
  unsigned threads = 0;               // as DiffOptions::threads
  Progress progress;
};

struct PatchReport {
  uint64_t files = 0;
  std::vector<std::string> not_in_patch;  // sentences naming the path
};

Result<PatchReport> write_patch(const fs::View& view, const ChangeSet& set,
                                const PatchOptions& options, const Sink& sink);

}  // namespace stoplog::diff
