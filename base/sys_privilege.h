// SPDX-License-Identifier: Apache-2.0
// Giving up privilege: ids, capabilities, securebits, keyrings, seccomp. Each
// acts on the calling thread, so callers are single-threaded. None can be taken
// back, and each is checked: an error means the process still has the privilege
// and must not go on.
#pragma once

#include <linux/filter.h>
#include <sys/types.h>

#include <cstdint>
#include <span>

#include "base/result.h"

namespace stoplog::sys {

// Real, effective and saved ids; no supplementary groups where the namespace
// permits setgroups (`drop_groups`).
Status become(uid_t uid, gid_t gid, bool drop_groups);
// Empties the bounding and ambient sets. Needs CAP_SETPCAP.
Status drop_bounding_set();
// Effective and permitted become `capabilities` (bits), inheritable nothing.
Status set_capabilities(uint64_t capabilities);
constexpr uint64_t kCapSysAdmin = uint64_t{1} << 21;
// No capabilities from being or becoming root or from KEEP_CAPS, no ambient
// ones, all locked. Needs CAP_SETPCAP.
Status lock_securebits();
// A new, empty session keyring. ENOSYS (no keyrings in this kernel) is success.
Status detach_keyring();
// Installs one filter; needs no_new_privs or CAP_SYS_ADMIN.
Status install_seccomp(std::span<const sock_filter> program);

}  // namespace stoplog::sys
