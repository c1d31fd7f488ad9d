// SPDX-License-Identifier: Apache-2.0
// Locks on single bytes of a file, which need not be there: fcntl(2) with
// F_OFD_SETLK. Such a lock is shared, belongs to the open file description, and
// is gone with its last fd, however the process ends.
//
//   TRY(sys::lock_byte(fd, 17));                        // until fd is closed
//   for (uint64_t at : TRY(sys::locked_bytes(other, {0, 99}))) ...
#pragma once

#include <cstdint>
#include <set>

#include "base/result.h"

namespace stoplog::sys {

// Both ends included; beyond INT64_MAX is EOVERFLOW.
struct ByteRange {
  uint64_t first = 0;
  uint64_t last = 0;
};

Status lock_byte(int fd, uint64_t at);
// Those that others have locked, by whatever description but this one.
Result<std::set<uint64_t>> locked_bytes(int fd, ByteRange range);

}  // namespace stoplog::sys
