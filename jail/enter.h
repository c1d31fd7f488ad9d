// SPDX-License-Identifier: Apache-2.0
// The command's own last steps, from fork to execve: the one path to exec.
// Called in a child of init, which is single-threaded.
//
// enter_command() returns only on failure, with what failed: a wall (the
// command must not run at all), the working directory, or exec itself.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "base/fd.h"
#include "base/result.h"
#include "jail/landlock_plan.h"
#include "jail/mount_plan.h"
#include "jail/seccomp_policy.h"
#include "jail/spec.h"
#include "jail/wire.h"

namespace stoplog::jail {

// What the zygote has prepared for all commands of the draft.
struct Prepared {
  WallSet leave_out;
  WallSet fail;
  std::vector<MountOp> proc_plan;
  BuiltSeccomp seccomp;
  LandlockPlan landlock;
  std::vector<Fd> landlock_paths;  // O_PATH, parallel to the rules
};

struct EnterFailure {
  enum class What : uint8_t { kWall, kCwd, kExec };
  What what{};
  int err = 0;
  std::string text;
};

// The system call filter, which init puts on itself: the command inherits it,
// and its compilation (0.1 ms) is over before the command is known.
Status filter_calls(const Prepared& prepared);

// The rules of Landlock, which init makes ahead as well, in the command's own
// mount namespace: what is left to the command is to put itself under them.
// Empty when that wall is left out.
Result<Fd> landlock_rules(const Prepared& prepared);

// `landlock` is what landlock_rules() gave.
EnterFailure enter_command(const Prepared& prepared, const RunRequest& request,
                           const std::array<int, 3>& stdio, int landlock);

// An Error as if the kernel had refused `wall`, when a test asks for that.
Status simulated(const WallSet& fail, Wall wall);

}  // namespace stoplog::jail
