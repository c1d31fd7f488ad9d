// SPDX-License-Identifier: Apache-2.0
// What became of a command: plain data, rendered as JSON by the draft's ledger
// and `run --report`.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>

#include "jail/spec.h"

namespace stoplog::jail {

// What holds a limit on this machine.
enum class Mechanism : uint8_t {
  kNone,
  kSupervisor,  // a clock, or the relay's count
  kCgroup2,
  kCgroup1,
  kPoll,
  kRlimit,
};
const char* mechanism_name(Mechanism mechanism);

struct Held {
  std::array<Mechanism, kAllLimits.size()> by{};
  Mechanism& operator[](LimitKind kind) {
    return by[static_cast<size_t>(kind)];
  }
  Mechanism operator[](LimitKind kind) const {
    return by[static_cast<size_t>(kind)];
  }
};

enum class KillReason : uint8_t {
  kNone,
  kTime,
  kCpu,
  kMemory,
  kOutput,
  kSupervisor,  // asked to, or whoever wanted the result went away
};
// "time", "cpu", "memory", "output", "supervisor"; nullptr for kNone.
const char* kill_reason_name(KillReason reason);

struct Outcome {
  int exit = 0;    // as `run` exits: 124, 125, 126, 127, 128+N included
  int signal = 0;  // that ended the command, 0: none
  KillReason killed_by = KillReason::kNone;
  uint64_t limit = 0;     // of the limit that ended it, ms or bytes
  uint64_t measured = 0;  // what it had reached
  uint64_t refused_pids = 0;
  uint64_t wall_ms = 0;
  uint64_t cpu_user_ms = 0;
  uint64_t cpu_system_ms = 0;
  uint64_t cpu_ms = 0;  // of the whole tree, as the strictest source saw it
  uint64_t memory_peak = 0;
  uint64_t pids_peak = 0;
  Held held;
  // Why it did not run: exec's or the working directory's error.
  std::optional<std::string> not_run;
};

}  // namespace stoplog::jail
