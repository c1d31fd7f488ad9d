// SPDX-License-Identifier: Apache-2.0
#include "base/sys_lock.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <vector>

namespace stoplog::sys {
namespace {

Result<struct flock> lock_of(short type, ByteRange range) {
  if (range.last >= INT64_MAX) return fail_errno(EOVERFLOW);
  struct flock lock{};
  lock.l_type = type;
  lock.l_whence = SEEK_SET;
  lock.l_start = static_cast<off_t>(range.first);
  lock.l_len = static_cast<off_t>(range.last - range.first + 1);
  return lock;
}

}  // namespace

Status lock_byte(int fd, uint64_t at) {
  struct flock lock = TRY(lock_of(F_RDLCK, {at, at}));
  if (::fcntl(fd, F_OFD_SETLK, &lock) != 0) return fail_errno(errno);
  return {};
}

// The kernel tells of one lock in a range, not of the first one.
Result<std::set<uint64_t>> locked_bytes(int fd, ByteRange range) {
  std::set<uint64_t> found;
  std::vector<ByteRange> open{range};
  while (!open.empty()) {
    ByteRange each = open.back();
    open.pop_back();
    struct flock lock = TRY(lock_of(F_WRLCK, each));
    if (::fcntl(fd, F_OFD_GETLK, &lock) != 0) return fail_errno(errno);
    if (lock.l_type == F_UNLCK) continue;
    // Neighbours of one description are told as one lock.
    const auto first = static_cast<uint64_t>(lock.l_start);
    const uint64_t last = lock.l_len == 0
                              ? UINT64_MAX
                              : first + static_cast<uint64_t>(lock.l_len) - 1;
    if (first > each.first) open.push_back({each.first, first - 1});
    if (last < each.last) open.push_back({last + 1, each.last});
    // A longer one was not made by lock_byte().
    constexpr uint64_t kMost = 4096;
    if (last - first >= kMost) continue;
    for (uint64_t at = std::max(first, each.first);
         at <= std::min(last, each.last); ++at)
      found.insert(at);
  }
  return found;
}

}  // namespace stoplog::sys
