// SPDX-License-Identifier: Apache-2.0
// Landlock: rules a process puts on itself. The header of this system may be
// older than the kernel, so the rights and scopes are named here, by ABI
// (landlock(7)); a caller asks landlock_abi() first and uses no newer right.
#pragma once

#include <cstdint>

#include "base/fd.h"
#include "base/result.h"

namespace stoplog::sys {

enum LandlockFs : uint64_t {
  kLandlockExecute = 1U << 0,
  kLandlockWriteFile = 1U << 1,
  kLandlockReadFile = 1U << 2,
  kLandlockReadDir = 1U << 3,
  kLandlockRemoveDir = 1U << 4,
  kLandlockRemoveFile = 1U << 5,
  kLandlockMakeChar = 1U << 6,
  kLandlockMakeDir = 1U << 7,
  kLandlockMakeReg = 1U << 8,
  kLandlockMakeSock = 1U << 9,
  kLandlockMakeFifo = 1U << 10,
  kLandlockMakeBlock = 1U << 11,
  kLandlockMakeSym = 1U << 12,
  kLandlockRefer = 1U << 13,     // ABI 2
  kLandlockTruncate = 1U << 14,  // ABI 3
  kLandlockIoctlDev = 1U << 15,  // ABI 5
};
enum LandlockScope : uint64_t {
  kLandlockScopeAbstractUnix = 1U << 0,  // ABI 6
  kLandlockScopeSignal = 1U << 1,        // ABI 6
};

// 0 when the kernel has none or it is not enabled.
int landlock_abi();
struct LandlockHandled {
  uint64_t fs = 0;
  uint64_t net = 0;
  uint64_t scoped = 0;
};
Result<Fd> landlock_create(const LandlockHandled& handled);
Status landlock_allow_path(int ruleset, int path_fd, uint64_t rights);
// Needs no_new_privs. For good, for this thread and what it starts.
Status landlock_restrict_self(int ruleset);

}  // namespace stoplog::sys
