// SPDX-License-Identifier: Apache-2.0
#include "base/sys_privilege.h"

#include <grp.h>
#include <linux/capability.h>
#include <linux/keyctl.h>
#include <linux/seccomp.h>
#include <linux/securebits.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>

namespace stoplog::sys {

Status become(uid_t uid, gid_t gid, bool drop_groups) {
  // Straight to the kernel: glibc's wrappers synchronise threads, and there
  // are none.
  if (drop_groups && ::syscall(SYS_setgroups, 0, nullptr) < 0)
    return fail_errno(errno);
  if (::syscall(SYS_setresgid, gid, gid, gid) < 0) return fail_errno(errno);
  if (::prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0) < 0) return fail_errno(errno);
  if (::syscall(SYS_setresuid, uid, uid, uid) < 0) return fail_errno(errno);
  if (::prctl(PR_SET_KEEPCAPS, 0, 0, 0, 0) < 0) return fail_errno(errno);
  return {};
}

Status drop_bounding_set() {
  if (::prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) < 0)
    return fail_errno(errno);
  for (unsigned long cap = 0; cap < 64; ++cap) {
    if (::prctl(PR_CAPBSET_DROP, cap, 0, 0, 0) == 0) continue;
    if (errno == EINVAL && cap > 0) break;  // past the kernel's last one
    return fail_errno(errno);
  }
  return {};
}

Status set_capabilities(uint64_t capabilities) {
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct data[2]{};
  data[0].effective = data[0].permitted = static_cast<uint32_t>(capabilities);
  data[1].effective = data[1].permitted =
      static_cast<uint32_t>(capabilities >> 32);
  if (::syscall(SYS_capset, &header, data) < 0) return fail_errno(errno);
  return {};
}

Status lock_securebits() {
  constexpr unsigned long kBits =
      SECBIT_NOROOT | SECBIT_NOROOT_LOCKED | SECBIT_NO_SETUID_FIXUP |
      SECBIT_NO_SETUID_FIXUP_LOCKED | SECBIT_KEEP_CAPS_LOCKED |
      SECBIT_NO_CAP_AMBIENT_RAISE | SECBIT_NO_CAP_AMBIENT_RAISE_LOCKED;
  if (::prctl(PR_SET_SECUREBITS, kBits, 0, 0, 0) < 0) return fail_errno(errno);
  return {};
}

Status detach_keyring() {
  if (::syscall(SYS_keyctl, KEYCTL_JOIN_SESSION_KEYRING, nullptr) < 0 &&
      errno != ENOSYS)
    return fail_errno(errno);
  return {};
}

Status install_seccomp(std::span<const sock_filter> program) {
  sock_fprog prog{};
  prog.len = static_cast<unsigned short>(program.size());
  prog.filter = const_cast<sock_filter*>(program.data());
  if (::syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &prog) < 0)
    return fail_errno(errno);
  return {};
}

}  // namespace stoplog::sys
