// SPDX-License-Identifier: Apache-2.0
// Is the real tree still what the draft saw of it? Every path that a commit is
// about to touch is compared with its base by content before anything is
// written.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/relpath.h"
#include "base/result.h"
#include "gate/commit_plan.h"
#include "gate/disk.h"

namespace stoplog::gate {

struct Drift {
  RelPath path;  // in the real tree
  size_t item = 0;
  std::string what;  // "has other content now, since 2026-11-16 08:00:00"
};

struct Verified {
  std::vector<Drift> drifts;
  // The directories that will be worked in, as they are now.
  std::map<RelPath, Identity> parents;
};

// Fills old_stat of the items. Errors are those of reading; a difference is a
// Drift, not an error.
Result<Verified> verify_base(const Disk& disk, int root,
                             std::vector<Item>& items);

// "cannot commit: the real tree changed: a has other content now, …"
Error drift_error(const std::vector<Drift>& drifts);

}  // namespace stoplog::gate
