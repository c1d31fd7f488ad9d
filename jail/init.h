// SPDX-License-Identifier: Apache-2.0
// init: pid 1 of one command's pid and mount namespace. Prepares its view
// ahead of time, waits for the command on `control`, starts it as the
// foreground group of its own session, passes signals on, reaps whatever the
// command leaves, and when the command has ended kills what is left and
// reports. It runs no agent code, holds no capability once its mounts stand,
// and cannot be traced.
//
// Ends when `control` closes: then everything inside ends with it.
#pragma once

#include "base/fd.h"
#include "jail/enter.h"

namespace stoplog::jail {

// `joins`: files of control groups that it enters by writing "0".
[[noreturn]] void run_init(const Prepared& prepared, Fd control,
                           const std::vector<Fd>& joins);

}  // namespace stoplog::jail
