// SPDX-License-Identifier: Apache-2.0
// File system calls: fd-relative, EINTR handled, errors as Result. Every open
// adds O_CLOEXEC|O_NOFOLLOW by itself. Prefer fd-relative calls because of
// TOCTOU: a path that is resolved twice can mean two things.
//
// Beneath a tree that an agent controls use open_beneath() alone: it resolves
// with RESOLVE_BENEATH|NO_SYMLINKS|NO_MAGICLINKS in the kernel, so neither a
// planted symlink nor a ".." nor /proc can lead out. `name` parameters of the
// *at calls are single components there, never paths.
#pragma once

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/types.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/fd.h"
#include "base/result.h"

namespace stoplog::sys {

// openat(2) with O_CLOEXEC|O_NOFOLLOW. AT_FDCWD for a path of our own.
Result<Fd> openat(int dir, const char* path, int flags, mode_t mode = 0);
inline Result<Fd> openat(int dir, const std::string& path, int flags,
                         mode_t mode = 0) {
  return openat(dir, path.c_str(), flags, mode);
}
// openat2(2), RESOLVE_BENEATH|NO_SYMLINKS|NO_MAGICLINKS; an empty path or "."
// is the directory itself. EXDEV and ELOOP mean the path tried to leave.
Result<Fd> open_beneath(int dir, std::string_view path, int flags,
                        mode_t mode = 0);
Result<Fd> dup(int fd);
// A second open file description of the same file (via /proc/self/fd).
Result<Fd> reopen(int fd, int flags);

// The identity and attributes of a file, from statx(2). btime is 0 where the
// file system has none.
struct Stat {
  dev_t dev = 0;
  uint64_t ino = 0;
  mode_t mode = 0;  // with the type bits
  uint32_t nlink = 0;
  uid_t uid = 0;
  gid_t gid = 0;
  dev_t rdev = 0;
  uint64_t size = 0;
  uint64_t blocks = 0;
  timespec atime{}, mtime{}, ctime{}, btime{};
  uint64_t mount_id = 0;
};
Result<Stat> statat(int dir, const char* name);  // never follows
inline Result<Stat> statat(int dir, const std::string& name) {
  return statat(dir, name.c_str());
}
Result<Stat> fstat(int fd);

// Whole-buffer I/O. pread_full stops early only at end of file and returns the
// bytes read; write_full and pwrite_full write everything or fail.
Result<size_t> pread_full(int fd, std::span<std::byte> out, uint64_t offset);
Status pwrite_full(int fd, std::span<const std::byte> data, uint64_t offset);
Status write_full(int fd, std::span<const std::byte> data);
Status write_full(int fd, std::string_view text);
// The whole file, refused with EFBIG when larger than `limit`.
Result<std::string> read_all(int fd, uint64_t limit);
Result<std::string> read_file(int dir, const std::string& name, uint64_t limit);

Status mkdirat(int dir, const std::string& name, mode_t mode);
Status unlinkat(int dir, const std::string& name, int flags = 0);
Status linkat(int from_dir, const std::string& from, int to_dir,
              const std::string& to, int flags = 0);
Status symlinkat(const std::string& target, int dir, const std::string& name);
Result<std::string> readlinkat(int dir, const std::string& name);
Status mknodat(int dir, const std::string& name, mode_t mode, dev_t dev);
// flags: RENAME_NOREPLACE, RENAME_EXCHANGE or 0.
Status renameat2(int from_dir, const std::string& from, int to_dir,
                 const std::string& to, unsigned flags);
Status fchmod(int fd, mode_t mode);
Status fchown(int fd, uid_t uid, gid_t gid);
Status fchownat(int dir, const std::string& name, uid_t uid, gid_t gid);
Status futimens(int fd, const timespec& atime, const timespec& mtime);
Status utimensat(int dir, const std::string& name, const timespec& atime,
                 const timespec& mtime);
Status ftruncate(int fd, uint64_t size);
Status fallocate(int fd, int mode, uint64_t offset, uint64_t length);
Status fsync(int fd);
Status fdatasync(int fd);
Status syncfs(int fd);
// FICLONE: the whole file shared by reflink, or EOPNOTSUPP/EXDEV/EINVAL.
Status clone_file(int from, int to);
// As much as the kernel copies in one call; 0 at end of file.
Result<size_t> copy_file_range(int from, uint64_t from_offset, int to,
                               uint64_t to_offset, size_t length);
// flock(2); with LOCK_NB an already held lock is EWOULDBLOCK.
Status flock(int fd, int operation);
// The same for at most `wait`; then EWOULDBLOCK.
Status flock_within(int fd, int operation, std::chrono::milliseconds wait);

// Extended attributes; the fd forms take any fd but O_PATH.
Result<std::string> fgetxattr(int fd, const std::string& name);
Status fsetxattr(int fd, const std::string& name, std::string_view value,
                 int flags = 0);
Status fremovexattr(int fd, const std::string& name);
Result<std::vector<std::string>> flistxattr(int fd);

}  // namespace stoplog::sys
