// SPDX-License-Identifier: Apache-2.0
// What proc(5) says of a process or thread.
//
//   proc_state("/proc/12/stat") == 'S'
//   proc_state("/proc/self/task/12/stat")
//   is_killed(12)
#pragma once

#include <sys/types.h>

#include <string>

namespace stoplog {

// SIGKILL is on its way to this process or thread, which has not ended yet.
bool is_killed(pid_t thread);

// The letter of its state; 0 when it is gone or cannot be read.
char proc_state(const std::string& stat_file);

}  // namespace stoplog
