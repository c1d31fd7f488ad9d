// SPDX-License-Identifier: Apache-2.0
// What a namespace needs once it exists: id maps, a loopback device that is up,
// a host name. Called once each, by the side that has the right to.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>

#include "base/result.h"

namespace stoplog::sys {

struct IdMap {
  uint32_t inside = 0;
  uint32_t outside = 0;
};
// One id each way for the user namespace of `pid`. Without privilege the kernel
// wants setgroups(2) denied first (`deny_setgroups`), and `outside` to be the
// writer's own.
Status write_id_maps(pid_t pid, IdMap user, IdMap group, bool deny_setgroups);
Status loopback_up();
Status set_host_name(const std::string& name);
// Overwrites this process's arguments and environment in memory, so that
// /proc/PID/cmdline and environ show nothing of them.
Status scrub_arguments();

}  // namespace stoplog::sys
