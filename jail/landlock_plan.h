// SPDX-License-Identifier: Apache-2.0
// Landlock as a second wall behind the mounts: everything may be read, only
// what is meant to be written can be, and signals and abstract sockets stay
// among the command's own processes. Pure: the kernel's ABI goes in, a list of
// rules comes out.
//
// Refused (kUnsupported): an ABI below 2, which cannot rename a file into
// another directory, and a jail on the host's network when the ABI (below 6)
// cannot keep it from the host's abstract sockets.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/sys_landlock.h"
#include "jail/spec.h"

namespace stoplog::jail {

struct LandlockRule {
  std::string path;
  uint64_t rights = 0;
  bool per_command = false;  // /proc: each command has its own
};

struct LandlockPlan {
  sys::LandlockHandled handled;
  std::vector<LandlockRule> rules;
};

Result<LandlockPlan> plan_landlock(const JailSpec& spec, int abi);
std::string describe(const LandlockRule& rule);

}  // namespace stoplog::jail
