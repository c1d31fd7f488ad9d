// SPDX-License-Identifier: Apache-2.0
// The times of directories in which a commit makes, removes or renames
// something. A commit leaves them as they come; an undo gives those back that
// nobody changed since.
//
//   std::vector<DirTimes> dirs = touched_directories(plan);
//   dirs = TRY(look_before(disk, root, std::move(dirs)));
//   give_back(dirs, record.dirs);             // an undo of that record
//   ... the switch ...
//   set_times(disk, root, dirs);              // a live one: gate/dir_watch.h
//   commit.dirs = TRY(look_after(disk, root, dirs));
//
// Setting a time may fail, where a directory is somebody else's: it is left as
// it is.
#pragma once

#include <span>
#include <vector>

#include "base/result.h"
#include "gate/commit_plan.h"
#include "gate/disk.h"
#include "gate/record.h"

namespace stoplog::gate {

// Pure. What the commit makes itself has its wanted time already.
std::vector<DirTimes> touched_directories(const CommitPlan& plan);
// Without those that are not there, but for what the commit makes.
Result<std::vector<DirTimes>> look_before(const Disk& disk, int root,
                                          std::vector<DirTimes> dirs);
void give_back(std::vector<DirTimes>& dirs, std::span<const DirTimes> undone);
void set_times(const Disk& disk, int root, std::span<const DirTimes> dirs);
// For the record: those that were there before, and are still.
Result<std::vector<DirTimes>> look_after(const Disk& disk, int root,
                                         std::span<const DirTimes> dirs);
// After a stage that stood in the workspace was removed from these.
void set_times_of(const Disk& disk, int root, const std::vector<RelPath>& tops,
                  std::span<const DirTimes> dirs);

}  // namespace stoplog::gate
