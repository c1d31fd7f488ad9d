// SPDX-License-Identifier: Apache-2.0
// Looking at a file through an O_PATH fd, without opening it: a FIFO or device
// is never opened, atime never moves, no read permission is needed. And the
// few calls on open files that content stores need (holes, directories).
#pragma once

#include <sys/statvfs.h>

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/sys_file.h"

namespace stoplog::sys {

// Extended attributes by an O_PATH fd of anything, symlinks included. A file
// system without them has none (empty, ENODATA).
Result<std::string> path_getxattr(int path_fd, const std::string& name);
Result<std::vector<std::string>> path_listxattr(int path_fd);
// The target of a symlink opened with O_PATH.
Result<std::string> path_readlink(int path_fd);

// lseek(2) with SEEK_DATA or SEEK_HOLE; ENXIO past the end.
Result<uint64_t> seek(int fd, uint64_t offset, int whence);

// Calls `each(name, type, ino)` for every entry but "." and ".."; type is a
// DT_* constant, DT_UNKNOWN on file systems that do not tell. Reads from the
// start through a description of its own, so calls may run side by side.
Status list_dir(
    int dir,
    const std::function<void(std::string_view, unsigned char, uint64_t)>& each);

// O_NOATIME where the kernel allows it (owner or CAP_FOWNER), else without.
Result<Fd> open_quiet(int dir, std::string_view path, int flags);

Result<struct statvfs> fstatvfs(int fd);

// The clock that local file systems stamp with: it moves once a tick (1-4 ms),
// so that writes in one tick share a time.
timespec coarse_now();

}  // namespace stoplog::sys
