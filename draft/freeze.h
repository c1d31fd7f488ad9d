// SPDX-License-Identifier: Apache-2.0
// A running command held still for a moment, so that a mark sees what its
// programs have written: by the cgroup freezer where its group is of version 2,
// else by stopping every process, its init first (which would tell of the
// stops otherwise). Not by the freezer of version 1: what it holds does not die
// of SIGKILL, and a daemon that was killed then would leave it so for ever.
//
//   Frozen frozen = TRY(Frozen::stop({.init = ..., .pidfd = ..., .group =
//   ...})); TRY(sync_mappings(frozen.pids(), {.mount = ..., .workspace =
//   ...}));
//   ... mark ...                        // goes on when `frozen` is destroyed
//
// A process that is stopped already (Ctrl-Z) stays stopped.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "base/fd.h"
#include "base/result.h"

namespace stoplog::draft {

struct FreezeTarget {
  pid_t init = -1;
  int pidfd = -1;  // init's; borrowed
  int group = -1;  // its control group of version 2; borrowed; -1: none
};

class Frozen {
 public:
  // ESRCH when it has ended, ETIMEDOUT when it does not come to rest within a
  // few seconds.
  static Result<Frozen> stop(const FreezeTarget& target);
  Frozen(Frozen&& other) noexcept;
  Frozen& operator=(Frozen&&) = delete;
  ~Frozen();
  // Everything that runs in the command, init aside.
  const std::vector<pid_t>& pids() const { return pids_; }

 private:
  Frozen() = default;
  Status stop_all(const FreezeTarget& target);
  Fd cgroup_;                // "cgroup.freeze", when that is the way
  std::vector<Fd> stopped_;  // pidfds, init first: those that we stopped
  std::vector<pid_t> pids_;
};

// Where the command's programs see the workspace, and where we do.
struct MappedAt {
  std::string mount;
  std::string workspace;
};
// Writes back what they stored through shared writable mappings of files in
// the workspace: the kernel keeps such stores to itself otherwise. Done by a
// process of its own (the program itself, `daemon --sync-mappings`), for no
// thread of the daemon may wait for its own mount.
Status sync_mappings(const std::vector<pid_t>& pids, const MappedAt& where);
// What that process does.
Status sync_mappings_here(const std::vector<pid_t>& pids,
                          const MappedAt& where);

// The same for files of a mount by their names, whoever has mapped them.
Status sync_files(const std::string& mount,
                  const std::vector<std::string>& paths);
Status sync_files_here(const std::string& mount,
                       const std::vector<std::string>& paths);

}  // namespace stoplog::draft
