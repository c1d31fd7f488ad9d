// SPDX-License-Identifier: Apache-2.0
// What proc(5) says of a process or thread.
//
//   proc_state("/proc/12/stat") == 'S'
//   proc_state("/proc/self/task/12/stat")
#pragma once

#include <string>

namespace stoplog {

// The letter of its state; 0 when it is gone or cannot be read.
char proc_state(const std::string& stat_file);

}  // namespace stoplog
