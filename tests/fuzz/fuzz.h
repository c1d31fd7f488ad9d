// SPDX-License-Identifier: Apache-2.0
// What every fuzz target shares: fuzz() is its one function, require() its one
// check. A crash, a sanitizer report or a broken promise is a finding.
#pragma once

#include <cstddef>
#include <cstdlib>
#include <string_view>

void fuzz(std::string_view input);

inline void require(bool holds) {
  if (!holds) std::abort();
}

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, size_t size);
extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, size_t size) {
  fuzz({reinterpret_cast<const char*>(data), size});
  return 0;
}
