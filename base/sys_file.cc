// SPDX-License-Identifier: Apache-2.0
#include "base/sys_file.h"

#include <linux/fs.h>
#include <linux/openat2.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <algorithm>
#include <thread>

#include "base/sys_retry.h"
#include "base/sys_within.h"

namespace stoplog::sys {
namespace {

constexpr int kAlways = O_CLOEXEC | O_NOFOLLOW;

Stat from_statx(const struct statx& s) {
  auto time = [](const statx_timestamp& t) {
    return timespec{t.tv_sec, static_cast<long>(t.tv_nsec)};
  };
  return Stat{
      .dev = makedev(s.stx_dev_major, s.stx_dev_minor),
      .ino = s.stx_ino,
      .mode = s.stx_mode,
      .nlink = s.stx_nlink,
      .uid = s.stx_uid,
      .gid = s.stx_gid,
      .rdev = makedev(s.stx_rdev_major, s.stx_rdev_minor),
      .size = s.stx_size,
      .blocks = s.stx_blocks,
      .atime = time(s.stx_atime),
      .mtime = time(s.stx_mtime),
      .ctime = time(s.stx_ctime),
      .btime = (s.stx_mask & STATX_BTIME) != 0 ? time(s.stx_btime) : timespec{},
      .mount_id = s.stx_mnt_id,
  };
}

Result<Stat> statx_call(int dir, const char* name, int flags) {
  struct statx s{};
  constexpr unsigned kMask = STATX_BASIC_STATS | STATX_BTIME | STATX_MNT_ID;
  if (::statx(dir, name, flags | AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT, kMask,
              &s) < 0)
    return fail_errno(errno);
  return from_statx(s);
}

Result<Fd> resolve(int dir, std::string_view path, int flags, mode_t mode,
                   uint64_t how_far) {
  std::string name(path.empty() ? "." : path);
  open_how how{};
  how.flags = static_cast<uint64_t>(flags | kAlways);
  // openat2 refuses a mode without O_CREAT, unlike openat.
  if ((flags & (O_CREAT | O_TMPFILE)) != 0) how.mode = mode;
  how.resolve =
      RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS | how_far;
  // EAGAIN: a rename elsewhere raced with the walk; the kernel asks to retry.
  for (int attempt = 0;; ++attempt) {
    long fd = retry([&] {
      return ::syscall(SYS_openat2, dir, name.c_str(), &how, sizeof how);
    });
    if (fd >= 0) return Fd(static_cast<int>(fd));
    if (errno != EAGAIN || attempt == 64) return fail_errno(errno);
  }
}

}  // namespace

Result<Fd> openat(int dir, const char* path, int flags, mode_t mode) {
  int fd = retry([&] { return ::openat(dir, path, flags | kAlways, mode); });
  if (fd < 0) return fail_errno(errno);
  return Fd(fd);
}

Result<Fd> open_beneath(int dir, std::string_view path, int flags,
                        mode_t mode) {
  return resolve(dir, path, flags, mode, 0);
}

Result<Fd> open_within(int dir, std::string_view path, int flags) {
  auto fd = resolve(dir, path, flags | O_NOATIME, 0, RESOLVE_NO_XDEV);
  if (fd || fd.error().err() != EPERM) return fd;
  return resolve(dir, path, flags, 0, RESOLVE_NO_XDEV);
}

Result<Fd> dup(int fd) {
  int copy = ::fcntl(fd, F_DUPFD_CLOEXEC, 0);
  if (copy < 0) return fail_errno(errno);
  return Fd(copy);
}

Result<Fd> reopen(int fd, int flags) {
  // The magic link itself must be followed, so no O_NOFOLLOW here.
  std::string path = "/proc/self/fd/" + std::to_string(fd);
  int copy = retry([&] { return ::open(path.c_str(), flags | O_CLOEXEC); });
  if (copy < 0) return fail_errno(errno);
  return Fd(copy);
}

Result<Stat> statat(int dir, const char* name) {
  return statx_call(dir, name, 0);
}

Result<Stat> fstat(int fd) { return statx_call(fd, "", AT_EMPTY_PATH); }

Result<size_t> pread_full(int fd, std::span<std::byte> out, uint64_t offset) {
  size_t have = 0;
  while (have < out.size()) {
    ssize_t n = retry([&] {
      return ::pread(fd, out.data() + have, out.size() - have,
                     static_cast<off_t>(offset + have));
    });
    if (n < 0) return fail_errno(errno);
    if (n == 0) break;
    have += static_cast<size_t>(n);
  }
  return have;
}

Status pwrite_full(int fd, std::span<const std::byte> data, uint64_t offset) {
  while (!data.empty()) {
    ssize_t n = retry([&] {
      return ::pwrite(fd, data.data(), data.size(), static_cast<off_t>(offset));
    });
    if (n < 0) return fail_errno(errno);
    if (n == 0) return fail_errno(EIO);
    data = data.subspan(static_cast<size_t>(n));
    offset += static_cast<uint64_t>(n);
  }
  return {};
}

Status write_full(int fd, std::span<const std::byte> data) {
  while (!data.empty()) {
    ssize_t n = retry([&] { return ::write(fd, data.data(), data.size()); });
    if (n < 0) return fail_errno(errno);
    data = data.subspan(static_cast<size_t>(n));
  }
  return {};
}

Status write_full(int fd, std::string_view text) {
  return write_full(fd, std::as_bytes(std::span(text)));
}

Result<std::string> read_all(int fd, uint64_t limit) {
  std::string out;
  char block[65536];
  for (;;) {
    ssize_t n = retry([&] { return ::read(fd, block, sizeof block); });
    if (n < 0) return fail_errno(errno);
    if (n == 0) return out;
    if (out.size() + static_cast<size_t>(n) > limit) return fail_errno(EFBIG);
    out.append(block, static_cast<size_t>(n));
  }
}

Result<std::string> read_file(int dir, const std::string& name,
                              uint64_t limit) {
  Fd fd = TRY(openat(dir, name, O_RDONLY));
  return read_all(fd.get(), limit);
}

Status mkdirat(int dir, const std::string& name, mode_t mode) {
  return done(::mkdirat(dir, name.c_str(), mode));
}

Status unlinkat(int dir, const std::string& name, int flags) {
  return done(::unlinkat(dir, name.c_str(), flags));
}

Status linkat(int from_dir, const std::string& from, int to_dir,
              const std::string& to, int flags) {
  return done(::linkat(from_dir, from.c_str(), to_dir, to.c_str(), flags));
}

Status symlinkat(const std::string& target, int dir, const std::string& name) {
  return done(::symlinkat(target.c_str(), dir, name.c_str()));
}

Result<std::string> readlinkat(int dir, const std::string& name) {
  std::string target(256, '\0');
  for (;;) {
    ssize_t n = ::readlinkat(dir, name.c_str(), target.data(), target.size());
    if (n < 0) return fail_errno(errno);
    if (static_cast<size_t>(n) < target.size()) {
      target.resize(static_cast<size_t>(n));
      return target;
    }
    target.resize(target.size() * 2);
  }
}

Status mknodat(int dir, const std::string& name, mode_t mode, dev_t dev) {
  return done(::mknodat(dir, name.c_str(), mode, dev));
}

Status renameat2(int from_dir, const std::string& from, int to_dir,
                 const std::string& to, unsigned flags) {
  return done(::renameat2(from_dir, from.c_str(), to_dir, to.c_str(), flags));
}

Status fchmod(int fd, mode_t mode) { return done(::fchmod(fd, mode)); }

Status fchown(int fd, uid_t uid, gid_t gid) {
  return done(::fchown(fd, uid, gid));
}

Status fchownat(int dir, const std::string& name, uid_t uid, gid_t gid) {
  return done(::fchownat(dir, name.c_str(), uid, gid, AT_SYMLINK_NOFOLLOW));
}

Status futimens(int fd, const timespec& atime, const timespec& mtime) {
  const timespec times[2] = {atime, mtime};
  return done(::futimens(fd, times));
}

Status utimensat(int dir, const std::string& name, const timespec& atime,
                 const timespec& mtime) {
  const timespec times[2] = {atime, mtime};
  return done(::utimensat(dir, name.c_str(), times, AT_SYMLINK_NOFOLLOW));
}

Status ftruncate(int fd, uint64_t size) {
  return done(retry([&] { return ::ftruncate(fd, static_cast<off_t>(size)); }));
}

Status fallocate(int fd, int mode, uint64_t offset, uint64_t length) {
  return done(retry([&] {
    return ::fallocate(fd, mode, static_cast<off_t>(offset),
                       static_cast<off_t>(length));
  }));
}

Status fsync(int fd) {
  return done(retry([&] { return ::fsync(fd); }));
}

Status fdatasync(int fd) {
  return done(retry([&] { return ::fdatasync(fd); }));
}

Status syncfs(int fd) {
  return done(retry([&] { return ::syncfs(fd); }));
}

Status clone_file(int from, int to) {
  return done(retry([&] { return ::ioctl(to, FICLONE, from); }));
}

Result<size_t> copy_file_range(int from, uint64_t from_offset, int to,
                               uint64_t to_offset, size_t length) {
  auto in = static_cast<off64_t>(from_offset);
  auto out = static_cast<off64_t>(to_offset);
  ssize_t n =
      retry([&] { return ::copy_file_range(from, &in, to, &out, length, 0); });
  if (n < 0) return fail_errno(errno);
  return static_cast<size_t>(n);
}

Status flock(int fd, int operation) {
  return done(retry([&] { return ::flock(fd, operation); }));
}

Status flock_within(int fd, int operation, std::chrono::milliseconds wait) {
  auto deadline = std::chrono::steady_clock::now() + wait;
  for (;;) {
    Status locked = flock(fd, operation | LOCK_NB);
    if (locked || locked.error().err() != EWOULDBLOCK ||
        std::chrono::steady_clock::now() >= deadline)
      return locked;
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
}

Result<std::string> fgetxattr(int fd, const std::string& name) {
  return sized([&](char* out, size_t size) {
    return ::fgetxattr(fd, name.c_str(), out, size);
  });
}

Status fsetxattr(int fd, const std::string& name, std::string_view value,
                 int flags) {
  return done(::fsetxattr(fd, name.c_str(), value.data(), value.size(), flags));
}

Status fremovexattr(int fd, const std::string& name) {
  return done(::fremovexattr(fd, name.c_str()));
}

Result<std::vector<std::string>> flistxattr(int fd) {
  std::string list = TRY(sized(
      [&](char* out, size_t size) { return ::flistxattr(fd, out, size); }));
  std::vector<std::string> names;
  for (size_t at = 0; at < list.size();) {
    std::string name(list.c_str() + at);
    at += name.size() + 1;
    names.push_back(std::move(name));
  }
  return names;
}

}  // namespace stoplog::sys
