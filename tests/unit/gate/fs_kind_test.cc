// SPDX-License-Identifier: Apache-2.0
#include "gate/fs_kind.h"

#include "gate/commits.h"
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

TEST_CASE(
    "two new names that differ by case alone are refused where they are one") {
  Site site;
  put(site.ws + "/keep", "k");
  put(site.ws + "/Readme", "old");
  site.branch();
  put(site.draft + "/d/Makefile", "one");
  put(site.draft + "/a", "new");
  std::filesystem::create_directory(site.ws + "/d");
  std::filesystem::create_directory(site.draft + "/d");
  put(site.draft + "/d/makefile", "two");
  Disk folding({}, [](int) { return kind_of_type(0x4d44); });
  auto before = tree(site.ws);
  auto refused = transact(site.ground(&folding), site.items(), CommitMeta{});
  REQUIRE(!refused);
  CHECK(refused.error().code() == Code::kDrift);
  std::string text = refused.error().text();
  CHECK(text.find("d/makefile") != std::string::npos);
  CHECK(text.find("does not tell names apart by case") != std::string::npos);
  CHECK(tree(site.ws) == before);
  site.check_clean();
  // The same where they are two.
  REQUIRE(site.commit());
  CHECK(tree(site.ws) == tree(site.draft));
}

TEST_CASE("a commit on a network file system says what it cannot promise") {
  Site site;
  put(site.ws + "/f", "old");
  site.branch();
  put(site.draft + "/f", "new");
  Disk remote({}, [](int) { return kind_of_type(0x6969); });
  auto done = transact(site.ground(&remote), site.items(), CommitMeta{});
  REQUIRE(done);
  REQUIRE(done->warnings.size() == 1);
  CHECK(done->warnings[0].find("NFS is a network file system") == 0);
  CHECK(get(site.ws + "/f") == "new");
  // It is in the record, too.
  auto record = read_commit(site.state.get(), 1);
  REQUIRE(record);
  CHECK(record->warnings == done->warnings);
}

TEST_CASE(
    "a file system that cannot exchange two names is refused by its name") {
  Site site;
  put(site.ws + "/f", "old");
  site.branch();
  put(site.draft + "/f", "new");
  Disk plain(
      [](const char* call) {
        return std::string_view(call) == "renameat2" ? EINVAL : 0;
      },
      [](int) { return kind_of_type(0x01021997); });
  auto refused = transact(site.ground(&plain), site.items(), CommitMeta{});
  REQUIRE(!refused);
  CHECK(refused.error().code() == Code::kUnsupported);
  CHECK(refused.error().text().find("(9P) cannot exchange") !=
        std::string::npos);
  CHECK(get(site.ws + "/f") == "old");
  site.check_clean();
}
