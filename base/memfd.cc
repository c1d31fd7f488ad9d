// SPDX-License-Identifier: Apache-2.0
#include "base/memfd.h"

#include <fcntl.h>
#include <sys/mman.h>

#include <span>

#include "base/sys_file.h"

namespace stoplog {
namespace {

constexpr int kSeals = F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE;

}  // namespace

Result<Fd> sealed_memfd(const char* name, std::string_view content) {
  Fd fd(::memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!fd) return fail_errno(errno);
  TRY(sys::write_full(fd.get(), content));
  if (::fcntl(fd.get(), F_ADD_SEALS, kSeals) < 0) return fail_errno(errno);
  return fd;
}

Result<std::string> read_sealed_memfd(int fd, size_t limit) {
  int seals = ::fcntl(fd, F_GET_SEALS);
  if (seals < 0 || (seals & kSeals) != kSeals) return fail_errno(EPERM);
  sys::Stat st = TRY(sys::fstat(fd));
  if (st.size > limit) return fail_errno(EFBIG);
  std::string out(st.size, '\0');
  size_t n =
      TRY(sys::pread_full(fd, std::as_writable_bytes(std::span(out)), 0));
  if (n != out.size()) return fail_errno(EIO);
  return out;
}

}  // namespace stoplog
