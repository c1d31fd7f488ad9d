// SPDX-License-Identifier: Apache-2.0
#include "jail/spec.h"

namespace stoplog::jail {

const char* limit_name(LimitKind kind) {
  switch (kind) {
    case LimitKind::kTime:
      return "time";
    case LimitKind::kCpu:
      return "cpu";
    case LimitKind::kCpus:
      return "cpus";
    case LimitKind::kMemory:
      return "memory";
    case LimitKind::kPids:
      return "pids";
    case LimitKind::kFiles:
      return "files";
    case LimitKind::kOutput:
      return "output";
  }
  return "";
}

}  // namespace stoplog::jail
