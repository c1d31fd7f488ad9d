// SPDX-License-Identifier: Apache-2.0
#include "base/sys_landlock.h"

#include <linux/landlock.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>

namespace stoplog::sys {

int landlock_abi() {
  long abi = ::syscall(SYS_landlock_create_ruleset, nullptr, 0,
                       LANDLOCK_CREATE_RULESET_VERSION);
  return abi < 0 ? 0 : static_cast<int>(abi);
}

Result<Fd> landlock_create(const LandlockHandled& handled) {
  // An older kernel takes the longer struct as long as the rest is zero.
  long fd = ::syscall(SYS_landlock_create_ruleset, &handled, sizeof handled, 0);
  if (fd < 0) return fail_errno(errno);
  return Fd(static_cast<int>(fd));
}

Status landlock_allow_path(int ruleset, int path_fd, uint64_t rights) {
  landlock_path_beneath_attr attr{};
  attr.allowed_access = rights;
  attr.parent_fd = path_fd;
  if (::syscall(SYS_landlock_add_rule, ruleset, LANDLOCK_RULE_PATH_BENEATH,
                &attr, 0) < 0)
    return fail_errno(errno);
  return {};
}

Status landlock_restrict_self(int ruleset) {
  if (::syscall(SYS_landlock_restrict_self, ruleset, 0) < 0)
    return fail_errno(errno);
  return {};
}

}  // namespace stoplog::sys
