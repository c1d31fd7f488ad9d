// SPDX-License-Identifier: Apache-2.0
#include "base/sys_kernel.h"

#include <sys/utsname.h>

#include <charconv>

namespace stoplog::sys {

KernelVersion parse_kernel_release(std::string_view release) {
  KernelVersion version;
  const char* end = release.data() + release.size();
  auto [dot, bad] = std::from_chars(release.data(), end, version.major);
  if (bad != std::errc{} || dot == end || *dot != '.') return {};
  auto [rest, worse] = std::from_chars(dot + 1, end, version.minor);
  if (worse != std::errc{}) return {};
  return version;
}

KernelVersion kernel_version() {
  utsname name{};
  return ::uname(&name) == 0 ? parse_kernel_release(name.release)
                             : KernelVersion{};
}

Status need_kernel(const KernelVersion& version) {
  if (version >= kOldestKernel) return {};
  return std::unexpected(
      Error(Code::kUnsupported,
            fmt::format("cannot work on Linux {}.{}: it lacks what the jail "
                        "is made of",
                        version.major, version.minor))
          .with_hint(fmt::format("boot Linux {}.{} or newer",
                                 kOldestKernel.major, kOldestKernel.minor)));
}

}  // namespace stoplog::sys
