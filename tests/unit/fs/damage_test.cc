// SPDX-License-Identifier: Apache-2.0
// Journals that do not replay, and the way out.
#include "catch_shim.h"
#include "fs/draft_view.h"
#include "fs/journal.h"
#include "tree_fixture.h"

using namespace stoplog;
using namespace stoplog::fs;
using stoplog::test::TreeFixture;
namespace stdfs = std::filesystem;

namespace {

Position marked(TreeFixture& f) {
  return f.tree->mark(MarkKind::kNamed, 0, "")->position;
}

// Appends to the closed draft's journal; returns the first one's position.
Position append(TreeFixture& f, std::vector<Record> records) {
  auto fd = open_generation(f.draft.fd(), 1, O_RDONLY);
  auto head = read_head(fd->get());
  auto end = journal_scan(fd->get(), *head, kEnd,
                          [](const Logged&) -> Status { return {}; });
  auto journal = Journal::resume(f.draft.fd(), *head, *end);
  REQUIRE((*journal)->append(records, 0));
  return (*journal)->position() - records.size() + 1;
}

}  // namespace

TEST_CASE(
    "a record about no node makes the draft read-only and a rollback out") {
  TreeFixture f;
  f.base.write("low", "low");
  f.open();
  f.create("before", "1");
  Position good = marked(f);
  f.create("after", "2");
  f.tree.reset();
  Position bad = append(f, {TouchRecord{.serial = 40, .time = {}}});
  f.open();
  CHECK(f.tree->read_only());
  REQUIRE(f.tree->recovery_notes().size() == 1);
  CHECK(f.tree->recovery_notes()[0] ==
        "record " + std::to_string(bad) + " cannot be applied: no node 40");
  CHECK(f.list("") == "after before low");
  CHECK(f.read("after") == "2");
  CHECK(f.write("low", "no!") == EROFS);
  CHECK_FALSE(f.tree->rollback(0));
  CHECK(f.tree->read_only());
  REQUIRE(f.tree->rollback(good));
  CHECK(f.list("") == "before low");
  CHECK(f.write("low", "yes") == 0);
  f.reopen();
  CHECK_FALSE(f.tree->read_only());
  CHECK(f.tree->recovery_notes().empty());
  CHECK(f.list("") == "before low");
  CHECK(f.read("low") == "yes");
}

TEST_CASE("a record that the live tree refused as well is no damage") {
  TreeFixture f;
  f.open();
  f.create("file", "1");
  f.tree.reset();
  Position bad = append(f, {TouchRecord{.serial = 40, .time = {}}});
  append(f, {RefusedRecord{{bad}}});
  f.open();
  CHECK_FALSE(f.tree->read_only());
  CHECK(f.tree->recovery_notes().empty());
  CHECK(f.read("file") == "1");
  CHECK(f.create("next") == 0);
}

TEST_CASE("a journal with a hole goes on from a mark before the hole") {
  TreeFixture f;
  f.open();
  f.create("one", "1");
  Position good = marked(f);
  f.reopen();  // cuts what was preallocated
  auto before = stdfs::file_size(f.draft / "journal" / "00000001");
  for (int i = 0; i < 20; ++i) f.create("f" + std::to_string(i), "x");
  Position late = marked(f);
  f.tree.reset();
  {
    std::fstream file(f.draft / "journal" / "00000001",
                      std::ios::in | std::ios::out);
    file.seekp(std::streamoff(before + 100));
    file.write("DAMAGE", 6);
  }
  f.open();
  CHECK(f.tree->read_only());
  CHECK_FALSE(f.tree->rollback(late));
  REQUIRE(f.tree->rollback(good));
  CHECK(f.list("") == "one");
  CHECK(f.create("two") == 0);
  CHECK_FALSE(f.tree->rollback(late));
  f.reopen();
  CHECK_FALSE(f.tree->read_only());
  CHECK(f.list("") == "one two");
}

TEST_CASE("another number of the same device is no other tree") {
  TreeFixture f;
  f.base.write("edited", "low");
  f.base.write("large", std::string(2u << 20, 'x'));
  f.base.write("linked", "low");
  stdfs::create_hard_link(f.base / "linked", f.base / "link");
  f.base.write("deleted", "low");
  f.open();
  CHECK(f.write("edited", "HELD") == 0);
  CHECK(f.write("large", "HELD") == 0);
  CHECK(f.write("linked", "HELD") == 0);
  CHECK(f.unlink("deleted") == 0);
  dev_t here = sys::fstat(f.base.fd())->dev;
  f.tree.reset();
  // As after a restart: what the journal knows has a number of before.
  append(f, {DeviceRecord{here + 100}});
  auto before = replay(f.draft.fd());
  REQUIRE(before);
  for (const auto& [serial, node] : before->state.nodes())
    if (serial != kRootSerial) CHECK(node->base->dev == here + 100);
  f.open();
  CHECK(f.read("large").substr(0, 5) == "HELDx");
  CHECK(f.read("edited") == "HELD");
  CHECK(f.read("link") == "HELD");
  CHECK(f.at("link") == f.at("linked"));
  CHECK(f.list("") == "edited large link linked");
  auto view = open_view({.draft_dir = f.draft.fd(), .base = f.base.fd()});
  REQUIRE(view);
  auto changes = (*view)->changes();
  REQUIRE(changes);
  CHECK(changes->size() == 5);
  for (const RawChange& change : *changes) CHECK_FALSE(change.drift);
}
