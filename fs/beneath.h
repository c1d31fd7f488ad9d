// SPDX-License-Identifier: Apache-2.0
// Opening paths of any depth beneath a root, no symlink followed anywhere. A
// RelPath can be longer than PATH_MAX; openat2 takes it in pieces then.
#pragma once

#include <string_view>

#include "base/fd.h"
#include "base/result.h"
#include "base/sys_file.h"

namespace stoplog::fs {

// As sys::open_beneath, for paths of any length.
Result<Fd> open_deep(int root, std::string_view path, int flags);
// The same with O_NOATIME where it is allowed.
Result<Fd> open_deep_quiet(int root, std::string_view path, int flags);
// The same; EXDEV where another mount begins.
Result<Fd> open_deep_within(int root, std::string_view path, int flags);
// Why they failed: nothing is there, or a component is no directory now.
bool is_absence(const Error& error);

// A file's identity: survives writes and renames, not replacement.
struct Identity {
  dev_t dev = 0;
  uint64_t ino = 0;
  timespec btime{};
};
// What moves when content changes (ctime moves on chmod and link too).
struct Fingerprint {
  uint64_t size = 0;
  timespec mtime{};
};
bool operator==(const Identity& a, const Identity& b);
bool operator==(const Fingerprint& a, const Fingerprint& b);
inline bool same_time(const timespec& a, const timespec& b) {
  return a.tv_sec == b.tv_sec && a.tv_nsec == b.tv_nsec;
}
Identity identity_of(const sys::Stat& st);
Fingerprint fingerprint_of(const sys::Stat& st);

}  // namespace stoplog::fs
