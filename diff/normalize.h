// SPDX-License-Identifier: Apache-2.0
// Raw changes made consistent, before anything is compared:
//
// - a deletion stands at its path in the base;
// - `from` is set only where the node moved, both sides exist, and nothing of
//   the base stood at the new path. A file moved over another one is that
//   other one modified and the old name deleted, as git has it; a directory
//   moved over another one is told name by name (Merges);
// - something new at a path whose old file was deleted is one change.
//
// Pure but for asking the view what stood at the targets of renames; costs
// nothing when nothing moved.
#pragma once

#include <map>
#include <vector>

#include "fs/view.h"

namespace stoplog::diff {

// Directories that stand where the base has others, by their path: where the
// draft moved each from. What is in them is told name by name.
using Merges = std::map<RelPath, RelPath>;

// Sorted by path; paths are unique.
Result<std::vector<fs::RawChange>> normalize(const fs::View& view,
                                             std::vector<fs::RawChange> raw,
                                             Merges* merges = nullptr);

// The directories that moved, by new path: where a path beneath one of them
// was in the base.
class MovedDirectories {
 public:
  explicit MovedDirectories(const std::vector<fs::RawChange>& changes);
  MovedDirectories() = default;
  void add(const RelPath& path, const RelPath& from);
  void remove(const RelPath& path);
  // Where `path` moved along from with the nearest moved directory above it;
  // nullopt when there is none. `path` itself does not count.
  std::optional<RelPath> origin(const RelPath& path) const;
  bool empty() const { return moved_.empty(); }

 private:
  std::map<std::string, RelPath, std::less<>> moved_;
};

// `path` with its first `base` bytes (a directory above it) replaced by `with`.
RelPath transplant(const RelPath& path, size_t base, const RelPath& with);

}  // namespace stoplog::diff
