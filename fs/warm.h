// SPDX-License-Identifier: Apache-2.0
// warm: walks a mount so that the kernel knows its names and attributes, and
// then the content of small files, before somebody asks; the first `git
// status`, `find` or `grep` then runs at the speed of the second.
//
//   Warmed done = TRY(warm("/run/.../mnt", {}));
//
// For a process of its own that is not the mount's daemon: a daemon that waits
// for its own mount waits for ever. Directories above come before those
// beneath, and all names before any content. Bounded by nodes, by bytes and by
// rest: after each directory it sleeps twice as long as that took, so that
// whoever works has the daemon to himself. What cannot be read is passed by;
// symlinks and other mounts are not entered.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"

namespace stoplog::fs {

struct WarmLimits {
  size_t nodes = 50'000;
  uint64_t bytes = 0;             // of content, in all
  uint64_t largest = 256 * 1024;  // file that is read
  bool rest = true;
};

struct Warmed {
  size_t directories = 0;
  size_t nodes = 0;  // names seen, those of directories included
  uint64_t bytes = 0;
};

Result<Warmed> warm(const std::string& mount, const WarmLimits& limits);

// What builds and package managers fill, and tools that search a tree leave
// out: not worth the memory.
bool is_left_cold(std::string_view parent, std::string_view name);

}  // namespace stoplog::fs
