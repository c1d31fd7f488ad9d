// SPDX-License-Identifier: Apache-2.0
#include "base/hash_speed.h"

// NOLINTBEGIN(bugprone-reserved-identifier): the linker's names
extern "C" {
// Absent where the linker was not told, or libcrypto is a shared library: then
// it has looked by itself. Not weak otherwise: a weak name takes nothing out of
// an archive.
#ifdef STOPLOG_WRAPS_CPUID
void __real_OPENSSL_cpuid_setup();
#else
void __real_OPENSSL_cpuid_setup() __attribute__((weak));
#endif
void __wrap_OPENSSL_cpuid_setup();
void __wrap_OPENSSL_cpuid_setup() {}
}

namespace stoplog {

void use_fast_hashing() {
  static const bool done = [] {
    auto* volatile look = &__real_OPENSSL_cpuid_setup;
    if (look != nullptr) look();
    return true;
  }();
  (void)done;
}
// NOLINTEND(bugprone-reserved-identifier)

}  // namespace stoplog
