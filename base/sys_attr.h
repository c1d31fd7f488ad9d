// SPDX-License-Identifier: Apache-2.0
// Attributes of a file by an O_PATH fd: no permission to read or write it is
// needed, and a FIFO or device is never opened. And read leases (fcntl(2)).
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "base/sys_file.h"

namespace stoplog::sys {

// Symlinks too. -1 leaves an id as it is.
Status path_chown(int path_fd, uid_t uid, gid_t gid);
// Not for symlinks, which have no mode of their own.
Status path_chmod(int path_fd, mode_t mode);
Status path_setxattr(int path_fd, const std::string& name,
                     std::string_view value);
Status path_removexattr(int path_fd, const std::string& name);
// The mtime alone; symlinks too.
Status path_set_mtime(int path_fd, const timespec& mtime);

// A read lease: granted only when nobody has the file open for writing
// (EAGAIN), to its owner (EACCES), where the file system has leases (EINVAL).
// A writer that comes later waits in open(2) until the fd is closed. Being
// asked for it back sends SIGURG, which is ignored by default, to the thread
// that took it, if that still is.
Status take_read_lease(int fd);
// To whichever thread of the process there is, which is ours.
Status call_process(int fd, pid_t process);
// False when somebody waits for it, or it is gone.
bool holds_read_lease(int fd);

}  // namespace stoplog::sys
