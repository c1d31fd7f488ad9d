// SPDX-License-Identifier: Apache-2.0
#include "jail/seccomp_policy.h"
#include "seccomp_program.inc"

namespace stoplog::jail {

BuiltSeccomp built_seccomp() {
  return {.numbers = kNumbers, .arguments = kArguments};
}

}  // namespace stoplog::jail
