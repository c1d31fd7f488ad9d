// SPDX-License-Identifier: Apache-2.0
#include "diff/secrets.h"

#include <cmath>

#include "catch_shim.h"

using namespace stoplog::diff;

TEST_CASE("entropy is that of the letters in bits") {
  CHECK(entropy("") == 0);
  CHECK(entropy("aaaaaaa") == 0);
  CHECK(std::abs(entropy("ab") - 1) < 1e-12);
  CHECK(std::abs(entropy("abcdabcd") - 2) < 1e-12);
  CHECK(std::abs(entropy("0123456789abcdef") - 4) < 1e-12);
  // Against libm, at every share that a text of 40 letters can have.
  for (size_t n = 1; n < 40; ++n) {
    const std::string text = std::string(n, 'x') + std::string(40 - n, 'y');
    const double p = static_cast<double>(n) / 40;
    const double want = -p * std::log2(p) - (1 - p) * std::log2(1 - p);
    CHECK(std::abs(entropy(text) - want) < 1e-12);
  }
}
