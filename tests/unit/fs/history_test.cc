// SPDX-License-Identifier: Apache-2.0
#include "fs/history.h"

#include "catch_shim.h"
#include "random_history.h"

using namespace stoplog;
using namespace stoplog::fs;
using stoplog::test::RandomHistory;

TEST_CASE("every mark of a random history keeps its view") {
  for (unsigned seed = 1; seed <= 40; ++seed) {
    INFO("seed " << seed);
    RandomHistory h(seed);
    h.run(150);
    for (const auto& [position, text] : h.marks) {
      INFO("mark " << position);
      CHECK(h.dump(position) == text);
    }
  }
}
