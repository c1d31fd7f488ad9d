// SPDX-License-Identifier: Apache-2.0
#include "base/mmap.h"

#include <sys/mman.h>

#include <limits>

#include "base/sys_file.h"

namespace stoplog {

Result<Mmap> Mmap::map_file(int fd) {
  sys::Stat stat = TRY(sys::fstat(fd));
  if (stat.size > std::numeric_limits<size_t>::max()) return fail_errno(EFBIG);
  return map(fd, static_cast<size_t>(stat.size), Access::kRead);
}

Result<Mmap> Mmap::map(int fd, size_t size, Access access) {
  return map_at(fd, 0, size, access);
}

Result<Mmap> Mmap::map_at(int fd, uint64_t offset, size_t size, Access access) {
  if (size == 0) return Mmap();  // mmap refuses an empty range
  int protection = PROT_READ | (access == Access::kWrite ? PROT_WRITE : 0);
  void* data = ::mmap(nullptr, size, protection, MAP_SHARED, fd,
                      static_cast<off_t>(offset));
  if (data == MAP_FAILED) return fail_errno(errno);
  return Mmap(static_cast<std::byte*>(data), size);
}

Mmap::~Mmap() {
  if (data_ != nullptr) ::munmap(data_, size_);
}

}  // namespace stoplog
