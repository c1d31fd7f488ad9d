// SPDX-License-Identifier: Apache-2.0
// The memory of a command's processes, for a limit that no control group holds.
// Each part is counted once: own_memory() leaves out what is mapped from files
// in memory, which are counted whole, mapped or not, by the others.
//
// Not to be seen from here: memory files that are only mapped or on their way
// through a socket, and what the kernel itself holds for a process (buffers of
// sockets and pipes, page tables).
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

namespace stoplog::jail {

// The proportional part of what they share, and of memory that is shared
// without any file. Slow, and exact.
uint64_t own_memory(const std::vector<pid_t>& pids);

// The same of one /proc/PID/smaps_rollup and smaps; for tests.
uint64_t own_memory_of(const std::string& rollup, const std::string& maps);

// System V segments of our own ipc namespace, attached or not.
uint64_t segment_memory();

// Files of memfd_create(2) that some process has open. Looking for them takes
// a call for each descriptor, so it is done when the machine's shared memory
// has grown, and every second.
class MemoryFiles {
 public:
  uint64_t measure(const std::vector<pid_t>& pids);

 private:
  using Clock = std::chrono::steady_clock;
  Clock::time_point last_;
  uint64_t machine_ = 0;  // when last looked
  uint64_t bytes_ = 0;
};

}  // namespace stoplog::jail
