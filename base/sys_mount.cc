// SPDX-License-Identifier: Apache-2.0
#include "base/sys_mount.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>

namespace stoplog::sys {

Result<Fd> clone_tree(int dir, const char* path) {
  unsigned flags = OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_RECURSIVE;
  if (*path == '\0') flags |= AT_EMPTY_PATH;
  Fd fd(::open_tree(dir, path, flags));
  if (!fd) return fail_errno(errno);
  return fd;
}

Result<Fd> open_path_beneath(int dir, const std::string& path) {
  open_how how{};
  how.flags = O_PATH | O_CLOEXEC | O_NOFOLLOW;
  how.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS;
  const char* name = path.empty() ? "." : path.c_str();
  long fd = ::syscall(SYS_openat2, dir, name, &how, sizeof how);
  if (fd < 0) return fail_errno(errno);
  return Fd(static_cast<int>(fd));
}

Result<Fd> new_mount(const char* type, std::span<const MountOption> options,
                     uint64_t attributes) {
  Fd context(::fsopen(type, FSOPEN_CLOEXEC));
  if (!context) return fail_errno(errno);
  for (const auto& [key, value] : options) {
    int rc = value.empty() ? ::fsconfig(context.get(), FSCONFIG_SET_FLAG,
                                        key.c_str(), nullptr, 0)
                           : ::fsconfig(context.get(), FSCONFIG_SET_STRING,
                                        key.c_str(), value.c_str(), 0);
    if (rc < 0) return fail_errno(errno);
  }
  if (::fsconfig(context.get(), FSCONFIG_CMD_CREATE, nullptr, nullptr, 0) < 0)
    return fail_errno(errno);
  Fd mount(::fsmount(context.get(), FSMOUNT_CLOEXEC,
                     static_cast<unsigned>(attributes)));
  if (!mount) return fail_errno(errno);
  return mount;
}

Status add_mount_attributes(int fd, uint64_t attributes, Depth depth) {
  struct mount_attr attr{};
  attr.attr_set = attributes;
  unsigned flags = AT_EMPTY_PATH;
  if (depth == Depth::kRecursive) flags |= AT_RECURSIVE;
  if (::mount_setattr(fd, "", flags, &attr, sizeof attr) < 0)
    return fail_errno(errno);
  return {};
}

Status attach_mount(int from, int to) {
  if (::move_mount(from, "", to, "",
                   MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH) < 0)
    return fail_errno(errno);
  return {};
}

Status make_mounts_private() {
  if (::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) < 0)
    return fail_errno(errno);
  return {};
}

Status own_mount_namespace() {
  if (::unshare(CLONE_NEWNS) != 0)
    return fail_errno(errno, "cannot make a mount namespace");
  TRY_CTX(make_mounts_private(), "cannot make mounts private");
  return {};
}

Status enter_root(int root) {
  if (::fchdir(root) < 0) return fail_errno(errno);
  // pivot_root(".", ".") stacks the old root on the new one, so that no
  // directory for it is needed; see pivot_root(2), NOTES.
  if (::syscall(SYS_pivot_root, ".", ".") < 0) return fail_errno(errno);
  if (::umount2(".", MNT_DETACH) < 0) return fail_errno(errno);
  if (::chdir("/") < 0) return fail_errno(errno);
  return {};
}

Status bind_over(const char* from, const char* to) {
  if (::mount(from, to, nullptr, MS_BIND, nullptr) < 0)
    return fail_errno(errno);
  return {};
}

Status remount_bind_read_only(const char* path, unsigned long flags) {
  if (::mount(nullptr, path, nullptr, MS_BIND | MS_REMOUNT | MS_RDONLY | flags,
              nullptr) < 0)
    return fail_errno(errno);
  return {};
}

Result<FsUsage> fs_usage(int fd) {
  struct statfs fs{};
  if (::fstatfs(fd, &fs) < 0) return fail_errno(errno);
  auto block = static_cast<uint64_t>(fs.f_bsize);
  return FsUsage{.used_bytes = (fs.f_blocks - fs.f_bfree) * block,
                 .size_bytes = fs.f_blocks * block};
}

}  // namespace stoplog::sys
