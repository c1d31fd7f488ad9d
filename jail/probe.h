// SPDX-License-Identifier: Apache-2.0
// What this machine can hold, for `stoplog doctor`: each wall and each limit,
// tried rather than guessed. The last check runs /bin/true in a real jail over
// an empty directory. Takes some milliseconds, forks (call it without threads),
// leaves nothing behind, and never fails itself.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "jail/outcome.h"
#include "jail/spec.h"

namespace stoplog::jail {

enum class Verdict : uint8_t { kOk, kWarn, kFail };
struct Check {
  std::string name;  // "namespaces", "apparmor", "seccomp", "landlock"…
  Verdict verdict = Verdict::kOk;
  std::string detail;
  std::string hint;  // empty: none
};

struct ProbeReport {
  std::vector<Check> checks;
  Held limits;  // what would hold each
  bool ok() const;
};

// `identity` as for a jail.
ProbeReport probe_jail(const Identity& identity);

}  // namespace stoplog::jail
