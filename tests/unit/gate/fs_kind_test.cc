// SPDX-License-Identifier: Apache-2.0
#include "gate/fs_kind.h"

#include "tree_fixture.h"

using namespace stoplog;
using namespace stoplog::gate;
using namespace stoplog::gate::test;

TEST_CASE("network file systems and those that fold case have names") {
  CHECK(kind_of_type(0x6969).name == "NFS");
  CHECK(kind_of_type(0x6969).network);
  CHECK(kind_of_type(static_cast<int>(0xff534d42)).name == "SMB");
  CHECK(kind_of_type(0x4d44).folds_case);
  CHECK(!kind_of_type(0xef53).network);
  CHECK(kind_of_type(0x1234567).name == "type 0x1234567");
  Site site("/dev/shm");
  CHECK(kind_of_dir(site.root.get()).name == "tmpfs");
  CHECK(!kind_of_dir(site.root.get()).folds_case);
}

TEST_CASE("names are compared without case") {
  CHECK(equal_but_for_case("Makefile", "makefile"));
  CHECK(!equal_but_for_case("makefile", "makefile"));
  CHECK(!equal_but_for_case("make", "makefile"));
  CHECK(!equal_but_for_case("a[", "a{"));
}
