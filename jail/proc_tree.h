// SPDX-License-Identifier: Apache-2.0
// What /proc tells about a command's processes, for limits that no control
// group holds. All of a command's processes descend from its init, however they
// daemonise, because init adopts orphans.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

#include "base/fd.h"
#include "base/result.h"

namespace stoplog::jail {

// "PID-START": names a process for as long as the machine is up.
std::string process_mark(pid_t pid);
// The process that a pidfd stands for, in our own pid namespace.
Result<pid_t> pid_of(int pidfd);

struct TreeUsage {
  uint64_t processes = 0;  // without init
  uint64_t cpu_us = 0;     // of the living and of those they waited for
  uint64_t user_us = 0, system_us = 0;  // its parts
  uint64_t resident = 0;  // sum of resident sizes: never below the true one
};
std::vector<pid_t> descendants(pid_t init);
// A pidfd of `pid`, which was seen among the descendants of `init`. ESRCH when
// it is not, or no longer, one of them: its number may be another's by now.
Result<Fd> open_descendant(pid_t pid, pid_t init);
TreeUsage measure_tree(pid_t init);
// The proportional part of what they share: slow, exact.
uint64_t proportional_memory(const std::vector<pid_t>& pids);

}  // namespace stoplog::jail
