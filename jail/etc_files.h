// SPDX-License-Identifier: Apache-2.0
// /etc inside: made, not shown. Names, hosts and identities are synthesised;
// what programs in /usr need of the host's /etc is taken by one table, and
// nothing else of it exists inside. Pure functions; mount_plan.h uses them.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "jail/mount_plan.h"
#include "jail/spec.h"

namespace stoplog::jail {

// Entries of the host's /etc that are shown when they exist: a directory is
// bound read-only, a file copied, a symlink into /usr or /etc remade.
std::span<const char* const> etc_table();
// passwd, group, hosts, hostname, resolv.conf, nsswitch.conf, machine-id...
std::vector<MountOp> synthesised_etc(const JailSpec& spec,
                                     const HostFacts& facts);
std::vector<MountOp> plan_etc(const JailSpec& spec, const HostFacts& facts);

}  // namespace stoplog::jail
