// SPDX-License-Identifier: Apache-2.0
#include "jail/outcome.h"

namespace stoplog::jail {

const char* mechanism_name(Mechanism mechanism) {
  switch (mechanism) {
    case Mechanism::kNone:
      return "none";
    case Mechanism::kSupervisor:
      return "supervisor";
    case Mechanism::kCgroup2:
      return "cgroup2";
    case Mechanism::kCgroup1:
      return "cgroup1";
    case Mechanism::kPoll:
      return "poll";
    case Mechanism::kRlimit:
      return "rlimit";
  }
  return "none";
}

const char* kill_reason_name(KillReason reason) {
  switch (reason) {
    case KillReason::kNone:
      return nullptr;
    case KillReason::kTime:
      return "time";
    case KillReason::kCpu:
      return "cpu";
    case KillReason::kMemory:
      return "memory";
    case KillReason::kOutput:
      return "output";
    case KillReason::kSupervisor:
      return "supervisor";
  }
  return nullptr;
}

}  // namespace stoplog::jail
