// SPDX-License-Identifier: Apache-2.0
#include "base/dir.h"

#include <dirent.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "base/sys_file.h"
#include "base/sys_process.h"
#include "base/sys_retry.h"

namespace stoplog {
namespace {

constexpr size_t kBlock = 32 * 1024;

// The head of struct linux_dirent64; the name follows, NUL-terminated.
struct RawEntry {
  uint64_t ino;
  int64_t offset;
  uint16_t length;
  uint8_t type;
};
constexpr size_t kNameOffset = 19;  // no padding before d_name

}  // namespace

Dir::Dir(Fd fd)
    : fd_(std::move(fd)),
      block_(std::make_unique_for_overwrite<std::byte[]>(kBlock)) {}

Dir Dir::from(Fd fd) { return Dir(std::move(fd)); }

Result<Dir> Dir::open(int parent, std::string_view name) {
  return Dir(
      TRY(sys::openat(parent, std::string(name), O_RDONLY | O_DIRECTORY)));
}

Result<const Dir::Entry*> Dir::next() {
  for (;;) {
    if (at_ >= used_) {
      long n = sys::retry([&] {
        return ::syscall(SYS_getdents64, fd_.get(), block_.get(), kBlock);
      });
      if (n < 0) return fail_errno(errno);
      if (n == 0) return nullptr;
      used_ = static_cast<size_t>(n);
      at_ = 0;
    }
    RawEntry raw{};
    std::memcpy(&raw, block_.get() + at_, kNameOffset);
    const char* name =
        reinterpret_cast<const char*>(block_.get() + at_ + kNameOffset);
    at_ += raw.length;
    entry_ = {.name = name, .ino = raw.ino, .type = raw.type};
    if (entry_.name != "." && entry_.name != "..") return &entry_;
  }
}

Status Dir::rewind() {
  used_ = at_ = 0;
  return sys::done(::lseek(fd_.get(), 0, SEEK_SET));
}

Result<std::vector<std::string>> list_names(int parent, std::string_view name) {
  Dir dir = TRY(Dir::open(parent, name));
  std::vector<std::string> names;
  while (const Dir::Entry* entry = TRY(dir.next()))
    names.emplace_back(entry->name);
  std::sort(names.begin(), names.end());
  return names;
}

namespace {

constexpr int kMaxDepth = 64;

// Where trees that lie too deep are moved, and the mount that is not left.
struct Removal {
  int top = -1;
  uint64_t mount_id = 0;
};

// Opens a directory for emptying; one that its owner cannot use is first given
// rwx. O_PATH and /proc keep the chmod from following a symlink.
Result<Dir> open_to_empty(int parent, const std::string& name) {
  Fd path = TRY(sys::openat(parent, name, O_PATH | O_DIRECTORY));
  if ((TRY(sys::fstat(path.get())).mode & 0700) != 0700) {
    std::string link = fmt::format("/proc/self/fd/{}", path.get());
    TRY(sys::done(::chmod(link.c_str(), 0700)));
  }
  return Dir::open(path.get(), ".");
}

Status remove_dir(Removal& removal, int parent, const std::string& name,
                  int depth);

// Until a whole pass finds nothing: an unlink during the walk may make getdents
// skip entries, and deep trees are moved up into the top directory.
Status empty_dir(Removal& removal, Dir& dir, int depth) {
  bool found = true;
  while (found) {
    found = false;
    TRY(dir.rewind());
    while (const Dir::Entry* entry = TRY(dir.next())) {
      found = true;
      std::string child(entry->name);
      auto gone = sys::unlinkat(dir.fd(), child);
      if (gone || gone.error().err() == ENOENT) continue;
      if (gone.error().err() != EISDIR) return gone;
      TRY(remove_dir(removal, dir.fd(), child, depth + 1));
    }
  }
  return {};
}

Status remove_dir(Removal& removal, int parent, const std::string& name,
                  int depth) {
  Dir dir = TRY(open_to_empty(parent, name));
  sys::Stat stat = TRY(sys::fstat(dir.fd()));
  if (depth == 0) removal = {.top = dir.fd(), .mount_id = stat.mount_id};
  if (stat.mount_id != removal.mount_id) return fail_errno(EXDEV);
  if (depth > kMaxDepth) {
    uint64_t random = 0;
    TRY(sys::getrandom(std::as_writable_bytes(std::span(&random, 1))));
    return sys::renameat2(parent, name, removal.top,
                          fmt::format(".removed-{:016x}", random), 0);
  }
  TRY(empty_dir(removal, dir, depth));
  return sys::unlinkat(parent, name, AT_REMOVEDIR);
}

}  // namespace

Status remove_tree(int parent, std::string_view name) {
  std::string target(name);
  auto gone = sys::unlinkat(parent, target);
  if (gone || gone.error().err() == ENOENT) return {};
  if (gone.error().err() != EISDIR) return gone;
  Removal removal;
  return remove_dir(removal, parent, target, 0);
}

}  // namespace stoplog
