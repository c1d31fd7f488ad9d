// SPDX-License-Identifier: Apache-2.0
// Watches one command to its end, holds what limits the kernel does not, and
// says what became of it. Blocks; one thread a command.
//
//   Outcome outcome = supervise(*running, {.client = socket.get()});
//
// When it returns, nothing of the command is alive and its control groups are
// gone. It never fails: whatever goes wrong inside becomes an Outcome.
#pragma once

#include <functional>

#include "jail/outcome.h"
#include "jail/running.h"

namespace stoplog::jail {

struct SuperviseOptions {
  // A socket whose other end belongs to whoever wants the result: when it hangs
  // up, the command is killed. -1: nobody.
  int client = -1;
  // The command stopped (by this signal) or goes on (0). For a terminal.
  std::function<void(int)> on_stop = {};
  // Called as soon as the outcome is known and nothing but init is alive; what
  // follows until supervise() returns is clearing up.
  std::function<void(const Outcome&)> on_end = {};
};

Outcome supervise(Running& running, const SuperviseOptions& options);

}  // namespace stoplog::jail
