// SPDX-License-Identifier: Apache-2.0
// What /proc tells about a command's processes, for limits that no control
// group holds. All of a command's processes descend from its init, however they
// daemonise, because init adopts orphans.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/fd.h"
#include "base/result.h"

namespace stoplog::jail {

// "PID-START": names a process for as long as the machine is up.
std::string process_mark(pid_t pid);
// The process that a pidfd stands for, in our own pid namespace.
Result<pid_t> pid_of(int pidfd);

// The CPU time of every process that was ever seen. Whoever ignores SIGCHLD
// waits for no child, and the kernel adds what those used to nobody.
class ProcessTimes {
 public:
  void see(pid_t pid, uint64_t started, uint64_t used_us);
  uint64_t total_us() const { return total_us_; }

 private:
  struct Seen {
    uint64_t started = 0;
    uint64_t used_us = 0;
  };
  std::map<pid_t, Seen> seen_;  // one for each number: pids are reused
  uint64_t total_us_ = 0;
};

struct TreeUsage {
  std::vector<pid_t> pids;  // without init
  uint64_t processes = 0;   // of them
  uint64_t cpu_us = 0;      // of the living and of those they waited for
  uint64_t user_us = 0, system_us = 0;  // its parts
  uint64_t resident = 0;  // sum of resident sizes: never below the true one
};
std::vector<pid_t> descendants(pid_t init);
// A pidfd of `pid`, which was seen among the descendants of `init`. ESRCH when
// it is not, or no longer, one of them: its number may be another's by now.
Result<Fd> open_descendant(pid_t pid, pid_t init);
TreeUsage measure_tree(pid_t init, ProcessTimes* times = nullptr);

}  // namespace stoplog::jail
