// SPDX-License-Identifier: Apache-2.0
#include "draft/jail_ids.h"

#include <string>

#include "catch_shim.h"

using namespace stoplog::draft;

TEST_CASE("a jail's user is one that there is in our namespace") {
  // The host.
  CHECK(jail_id("         0          0 4294967295\n", 5) == 1'900'000'005u);
  CHECK(jail_id("0 0 4294967295\n", 100'000'007) == 1'900'000'007u);
  // A container's: one for root, a range for the others.
  const std::string container = "0 1000 1\n1 100000 65536\n";
  CHECK(jail_id(container, 0) == 49153u);
  CHECK(jail_id(container, 8191) == 57344u);
  CHECK(jail_id(container, 8192) == 49153u);
  // The largest, wherever it stands.
  CHECK(jail_id("5000 1 5000\n100000 1 100000\n0 0 1\n", 1) == 175'001u);
  CHECK(jail_id("0 1 4096\n", 0) == 3072u);
}

TEST_CASE("a namespace with few users has none for a jail") {
  for (const char* map : {"", "0 1000 1\n", "0 1000 4095\n", "x\n", "0 1\n",
                          "0 1 99999999999\n", "\n\n", "0 1 -5\n"})
    CHECK_FALSE(jail_id(map, 7));
}
