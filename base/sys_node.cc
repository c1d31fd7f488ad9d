// SPDX-License-Identifier: Apache-2.0
#include "base/sys_node.h"

#include <dirent.h>
#include <sys/syscall.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <cstring>

#include "base/sys_retry.h"

namespace stoplog::sys {
namespace {

std::string link_of(int fd) { return "/proc/self/fd/" + std::to_string(fd); }

}  // namespace

Result<std::string> path_getxattr(int path_fd, const std::string& name) {
  std::string path = link_of(path_fd);
  auto value = sized([&](char* out, size_t size) {
    return ::getxattr(path.c_str(), name.c_str(), out, size);
  });
  if (!value && value.error().err() == EOPNOTSUPP) return fail_errno(ENODATA);
  return value;
}

Result<std::vector<std::string>> path_listxattr(int path_fd) {
  std::string path = link_of(path_fd);
  auto list = sized([&](char* out, size_t size) {
    return ::listxattr(path.c_str(), out, size);
  });
  std::vector<std::string> names;
  if (!list && list.error().err() == EOPNOTSUPP) return names;
  std::string all = TRY(std::move(list));
  for (size_t at = 0; at < all.size();) {
    std::string name(all.c_str() + at);
    at += name.size() + 1;
    names.push_back(std::move(name));
  }
  return names;
}

Result<std::string> path_readlink(int path_fd) {
  return readlinkat(path_fd, "");
}

Result<uint64_t> seek(int fd, uint64_t offset, int whence) {
  off_t at = ::lseek(fd, static_cast<off_t>(offset), whence);
  if (at < 0) return fail_errno(errno);
  return static_cast<uint64_t>(at);
}

Status list_dir(int dir,
                const std::function<void(std::string_view, unsigned char,
                                         uint64_t)>& each) {
  auto opened = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_NOATIME);
  if (!opened && opened.error().err() == EPERM)
    opened = openat(dir, ".", O_RDONLY | O_DIRECTORY);
  // May be read and not searched: its magic link is no lookup in it.
  if (!opened && opened.error().err() == EACCES)
    opened = reopen(dir, O_RDONLY | O_DIRECTORY);
  Fd own = TRY(std::move(opened));
  alignas(dirent64) char block[32768];
  for (;;) {
    long n = ::syscall(SYS_getdents64, own.get(), block, sizeof block);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return fail_errno(errno);
    if (n == 0) return {};
    for (long at = 0; at < n;) {
      // glibc's dirent64 has the layout of the kernel's linux_dirent64.
      const auto* entry = reinterpret_cast<const dirent64*>(block + at);
      at += entry->d_reclen;
      std::string_view name = entry->d_name;
      if (name != "." && name != "..") each(name, entry->d_type, entry->d_ino);
    }
  }
}

Result<Fd> open_quiet(int dir, std::string_view path, int flags) {
  auto fd = open_beneath(dir, path, flags | O_NOATIME);
  if (!fd && fd.error().err() == EPERM) return open_beneath(dir, path, flags);
  return fd;
}

Result<struct statvfs> fstatvfs(int fd) {
  struct statvfs st{};
  if (::fstatvfs(fd, &st) < 0) return fail_errno(errno);
  return st;
}

timespec coarse_now() {
  timespec t{};
  ::clock_gettime(CLOCK_REALTIME_COARSE, &t);
  return t;
}

}  // namespace stoplog::sys
