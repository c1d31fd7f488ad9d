// SPDX-License-Identifier: Apache-2.0
// Which limit is held by what: decided before anything runs, by a pure
// function, so that a limit that was asked for and cannot be held refuses the
// command (kUnsupported) instead of being forgotten.
//
// Never RLIMIT_AS or RLIMIT_DATA: 4 GB of it breaks node with WebAssembly and
// AddressSanitizer, which reserve far more than they use.
#pragma once

#include <vector>

#include "base/result.h"
#include "jail/outcome.h"
#include "jail/spec.h"

namespace stoplog::jail {

// What this machine has.
struct LimitMeans {
  int cgroup_version = 0;  // of the groups that could be made
  bool memory = false;     // controllers in them
  bool pids = false;
  bool cpu = false;
  bool cpuacct = false;
  // RLIMIT_NPROC counts per user namespace (Linux 5.14), so it counts ours.
  bool process_rlimit = false;
  bool proc = true;  // /proc can be polled
};

class CgroupSet;
LimitMeans limit_means(const CgroupSet& cgroup);

struct LimitPlan {
  Held held;  // of the limits that are set; kNone for the others
  std::vector<LimitKind> not_held;  // set, best effort, and not to be had
};
Result<LimitPlan> plan_limits(const CommandSpec& command,
                              const LimitMeans& means);
bool has_limit(const Limits& limits, LimitKind kind);

}  // namespace stoplog::jail
