// SPDX-License-Identifier: Apache-2.0
// The system call policy as data, and its compiled form.
//
// Calls are decided by number for the native architecture alone; a foreign ABI
// (int 0x80, x32) kills. What the table does not know answers ENOSYS, so that a
// program meant for a newer kernel falls back instead of failing; so do clone3,
// whose flags a filter cannot see, and io_uring, which works around filters.
//
// There are two programs, because libseccomp cannot express "allow, but not
// with these arguments" next to another default: `numbers` (default ENOSYS) and
// `arguments` (default allow). The kernel takes the stricter answer of the two,
// and skips both for a call that is always allowed (Linux 5.11).
//
// Both are compiled at build time (gen/seccomp_gen.cc); at run time there is
// only built_seccomp().
#pragma once

#include <linux/filter.h>

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"

namespace stoplog::jail {

enum class CallAction : uint8_t {
  kAllow,
  kEperm,
  kEnosys,
  kEafnosupport,
  kEprotonosupport,
  kIgnore  // answers 0 and does nothing
};

struct CallTest {
  enum class Op : uint8_t { kEqual, kNotEqual, kGreater, kMaskedEqual };
  unsigned argument = 0;
  Op op = Op::kEqual;
  uint64_t value = 0;
  uint64_t mask = 0;  // kMaskedEqual
};

struct CallRule {
  const char* call = nullptr;
  CallAction action = CallAction::kAllow;
  std::vector<CallTest> tests =
      {};  // all must hold; none: whatever the arguments
};

std::vector<CallRule> seccomp_policy();
// "deny  clone EPERM when arg0 & 0x10000000 == 0x10000000"
std::string describe(const CallRule& rule);

struct SeccompPrograms {
  std::vector<sock_filter> numbers;
  std::vector<sock_filter> arguments;
};
// With libseccomp: 2 ms.
Result<SeccompPrograms> compile_seccomp(std::span<const CallRule> policy);

struct BuiltSeccomp {
  std::span<const sock_filter> numbers;
  std::span<const sock_filter> arguments;
};
BuiltSeccomp built_seccomp();

}  // namespace stoplog::jail
