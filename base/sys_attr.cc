// SPDX-License-Identifier: Apache-2.0
#include "base/sys_attr.h"

#include <sys/xattr.h>
#include <unistd.h>

#include <csignal>

namespace stoplog::sys {
namespace {

std::string magic_path(int fd) { return "/proc/self/fd/" + std::to_string(fd); }

Status done(int result) {
  if (result < 0) return fail_errno(errno);
  return {};
}

}  // namespace

Status path_chown(int path_fd, uid_t uid, gid_t gid) {
  return done(::fchownat(path_fd, "", uid, gid, AT_EMPTY_PATH));
}

Status path_chmod(int path_fd, mode_t mode) {
  return done(::chmod(magic_path(path_fd).c_str(), mode));
}

Status path_setxattr(int path_fd, const std::string& name,
                     std::string_view value) {
  return done(::setxattr(magic_path(path_fd).c_str(), name.c_str(),
                         value.data(), value.size(), 0));
}

Status path_removexattr(int path_fd, const std::string& name) {
  return done(::removexattr(magic_path(path_fd).c_str(), name.c_str()));
}

Status path_set_mtime(int path_fd, const timespec& mtime) {
  timespec times[2] = {{0, UTIME_OMIT}, mtime};
  return done(::utimensat(path_fd, "", times, AT_EMPTY_PATH));
}

Status take_read_lease(int fd) {
  // The default, SIGIO, kills.
  (void)::fcntl(fd, F_SETSIG, SIGURG);
  return done(::fcntl(fd, F_SETLEASE, F_RDLCK));
}

Status call_process(int fd, pid_t process) {
  return done(::fcntl(fd, F_SETOWN, process));
}

bool holds_read_lease(int fd) { return ::fcntl(fd, F_GETLEASE) == F_RDLCK; }

}  // namespace stoplog::sys
