// SPDX-License-Identifier: Apache-2.0
#include "base/sys_inotify.h"

#include <fcntl.h>
#include <unistd.h>

#include <charconv>
#include <cstring>

#include "base/sys_file.h"

namespace stoplog::sys {

Result<Fd> inotify_open() {
  int fd = ::inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
  if (fd < 0) return fail_errno(errno);
  return Fd(fd);
}

Result<int> inotify_watch(int inotify, int target, uint32_t mask) {
  std::string path = "/proc/self/fd/" + std::to_string(target);
  int watch = ::inotify_add_watch(inotify, path.c_str(), mask);
  if (watch < 0) return fail_errno(errno);
  return watch;
}

Status inotify_unwatch(int inotify, int watch) {
  if (::inotify_rm_watch(inotify, watch) < 0) return fail_errno(errno);
  return {};
}

Result<std::vector<InotifyEvent>> inotify_read(int inotify) {
  alignas(inotify_event) char buffer[65536];
  std::vector<InotifyEvent> out;
  ssize_t n = ::read(inotify, buffer, sizeof buffer);
  if (n < 0) {
    if (errno == EAGAIN || errno == EINTR) return out;
    return fail_errno(errno);
  }
  for (const char* at = buffer; at < buffer + n;) {
    inotify_event event{};
    std::memcpy(&event, at, sizeof event);
    // The name is padded with NULs up to event.len.
    const char* name = at + sizeof event;
    out.push_back({.watch = event.wd,
                   .mask = event.mask,
                   .name = std::string(name, ::strnlen(name, event.len))});
    at += sizeof event + event.len;
  }
  return out;
}

Result<uint64_t> inotify_max_watches() {
  Fd fd =
      TRY(openat(AT_FDCWD, "/proc/sys/fs/inotify/max_user_watches", O_RDONLY));
  std::string text = TRY(read_all(fd.get(), 64));
  uint64_t value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

}  // namespace stoplog::sys
