// SPDX-License-Identifier: Apache-2.0
// Mounts, by the fd-based interface (open_tree, fsopen, mount_setattr,
// move_mount: Linux 5.12). A mount is made detached, given its attributes while
// nobody can see it, and attached last: there is no moment at which a read-only
// tree is writable. All calls act in the caller's mount namespace and need
// CAP_SYS_ADMIN over it; errors are plain errnos for the caller to explain.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <utility>

#include "base/fd.h"
#include "base/result.h"

namespace stoplog::sys {

// The tree at `path`, with all that is mounted beneath it: copied and detached.
// Recursive always: a part of a locked set of mounts cannot be copied alone.
Result<Fd> clone_tree(int dir, const char* path);
// An O_PATH fd that never leaves `dir` and follows no symlink.
Result<Fd> open_path_beneath(int dir, const std::string& path);

using MountOption = std::pair<std::string, std::string>;  // empty value: a flag
// fsopen, fsconfig, fsmount: a new instance of a file system, detached.
Result<Fd> new_mount(const char* type, std::span<const MountOption> options,
                     uint64_t attributes);

// MOUNT_ATTR_* added to the mount at `fd`, and to all beneath it when
// recursive. Taking attributes away is never needed here.
enum class Depth { kOne, kRecursive };
Status add_mount_attributes(int fd, uint64_t attributes, Depth depth);
// Attaches the detached mount `from` at the place that `to` is an fd of.
Status attach_mount(int from, int to);
// What is mounted here neither sends nor receives mounts from now on.
Status make_mounts_private();
// A mount namespace of its own for the calling process, all of it private: the
// host does not see what is mounted there, and it vanishes with the process.
Status own_mount_namespace();
// The directory `root`, itself a mount, becomes "/", and the old root is
// detached; the working directory is the new root.
Status enter_root(int root);

// One old-style call where it is the shortest way: bind `from` over `to`.
Status bind_over(const char* from, const char* to);
// Makes the mount at `path` read-only after a bind.
Status remount_bind_read_only(const char* path, unsigned long flags);

struct FsUsage {
  uint64_t used_bytes = 0;
  uint64_t size_bytes = 0;
};
Result<FsUsage> fs_usage(int fd);

}  // namespace stoplog::sys
