// SPDX-License-Identifier: Apache-2.0
// An interrupted commit whose disks are all there, and that cannot be brought
// to an end because one directory takes no change.
#include "tree_fixture.h"

using namespace stoplog;
using namespace stoplog::gate;
using namespace stoplog::gate::test;

namespace {

// Died when one of its two files was switched; no name can be moved since.
struct Stuck {
  Site site{"/dev/shm"};
  Disk disk{[](const char* call) {
    return std::string_view(call) == "renameat2" ? EPERM : 0;
  }};

  Stuck() {
    put(site.ws + "/d1/f", "old 1");
    put(site.ws + "/d2/f", "old 2");
    site.branch();
    put(site.draft + "/d1/f", "new 1");
    put(site.draft + "/d2/f", "new 2");
    die_after(site, 1);
    REQUIRE(get(site.ws + "/d1/f") == "new 1");
    REQUIRE(get(site.ws + "/d2/f") == "old 2");
  }
};

}  // namespace

TEST_CASE("a recovery that fails names the path that it failed at") {
  Stuck stuck;
  auto report = recover(stuck.site.ground(&stuck.disk));
  REQUIRE(!report);
  INFO(report.error().text());
  CHECK(report.error().text().find("d2/f") != std::string::npos);
  // It is completed when that is over.
  REQUIRE(recover(stuck.site.ground()));
  CHECK(tree(stuck.site.ws) == tree(stuck.site.draft));
  stuck.site.check_clean();
}

TEST_CASE("a roll-back that fails names the path that it failed at") {
  Stuck stuck;
  put(stuck.site.state_path + "/pending/abort", "abort\n");
  auto report = recover(stuck.site.ground(&stuck.disk));
  REQUIRE(!report);
  INFO(report.error().text());
  CHECK(report.error().text().find("d1/f") != std::string::npos);
  REQUIRE(recover(stuck.site.ground()));
  CHECK(get(stuck.site.ws + "/d1/f") == "old 1");
  stuck.site.check_clean();
}

TEST_CASE("a commit that cannot be brought to an end is given up") {
  Stuck stuck;
  Site& site = stuck.site;
  auto report = give_up(site.ground(&stuck.disk));
  INFO((report ? report->text() : report.error().text()));
  REQUIRE(report);
  CHECK(report->what == RecoverReport::What::kGivenUp);
  REQUIRE(report->left.size() == 1);
  CHECK(report->left[0].path.str() == "d1/f");
  REQUIRE(report->left[0].kept);
  CHECK(*site.store->get(*report->left[0].kept, 100) == "old 1");
  CHECK(get(site.ws + "/d2/f") == "old 2");
  CHECK(list_commits(site.state.get())->empty());
  site.check_clean();
}
