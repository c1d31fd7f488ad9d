// SPDX-License-Identifier: Apache-2.0
// libcrypto's choice of code for this processor, made when it pays.
//
//   use_fast_hashing();   // before much is given to SHA256_Update, SHA1_Update
//
// libcrypto looks at the processor before main(): a dozen CPUID instructions,
// each of which leaves a virtual machine, 0.07 ms of every start there. The
// linker hands that call to us (--wrap in cmake/rooms.cmake) and it is made
// here, once; until then libcrypto uses code that runs everywhere. Any thread.
#pragma once

namespace stoplog {

void use_fast_hashing();

}  // namespace stoplog
