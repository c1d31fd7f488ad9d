// SPDX-License-Identifier: Apache-2.0
// The zygote's own side: what runs in the process that Zygote::start() forks.
// It builds the jail's root, gives up everything but CAP_SYS_ADMIN in its user
// namespace, and then makes one init per request until its socket closes.
// pid 1 of its own pid namespace: when it ends, everything inside ends.
#pragma once

#include <vector>

#include "base/fd.h"
#include "jail/mount_plan.h"
#include "jail/spec.h"
#include "jail/user_counts.h"

namespace stoplog::jail {

struct ZygotePlan {
  const JailSpec& spec;
  std::vector<MountOp> root;
  std::vector<MountOp> proc;
  std::vector<UserCount> counts;
  bool privileged = false;  // started by root
};

[[noreturn]] void run_zygote(ZygotePlan plan, Fd control);

}  // namespace stoplog::jail
