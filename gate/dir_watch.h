// SPDX-License-Identifier: Apache-2.0
// Who else makes, removes or renames something in a directory that an undo is
// about to give its old time back? That time must then tell of it, or a build
// and a file manager would not look again.
//
//   DirWatch watch = DirWatch::begin(disk, root, dirs, ops, own_name);
//   ... the switch; watch.drain() now and then ...
//   watch.settle(disk, root, dirs);       // instead of set_times()
//
// By inotify, whose events have names: those of the commit's own steps are
// known. A directory that cannot be watched does not get its time back. Costs
// nothing where no time is to be given back.
#pragma once

#include <map>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "base/fd.h"
#include "gate/dir_times.h"
#include "gate/disk.h"
#include "gate/record.h"

namespace stoplog::gate {

class DirWatch {
 public:
  DirWatch() = default;
  // `dirs` as looked at before; the wanted time goes from those that somebody
  // wrote to since, or that cannot be watched. `stage` is the name of a stage.
  static DirWatch begin(const Disk& disk, int root, std::vector<DirTimes>& dirs,
                        std::span<const LiveOp> ops, const std::string& stage);
  // The kernel's queue is finite; a full one makes all of them written to.
  void drain();
  // Sets the wanted times. What somebody wrote to until then has the time of
  // now at the end.
  void settle(const Disk& disk, int root, std::vector<DirTimes>& dirs);

 private:
  struct Dir {
    std::set<std::string> ours;  // names that the commit itself moves
    std::set<RelPath> paths;     // DirTimes::path
    bool written = false;        // by somebody else
  };
  bool is_written(const RelPath& path) const;

  Fd queue_;
  std::map<int, Dir> dirs_;  // by watch
};

}  // namespace stoplog::gate
