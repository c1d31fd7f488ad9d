// SPDX-License-Identifier: Apache-2.0
// Nodes that no name leads to any more but that the kernel still knows: every
// record about them must be one that a replay can apply.
#include <utility>

#include "catch_shim.h"
#include "tree_fixture.h"

using namespace stoplog;
using namespace stoplog::fs;
using stoplog::test::TreeFixture;
namespace stdfs = std::filesystem;

namespace {

Position marked(TreeFixture& f) {
  return f.tree->mark(MarkKind::kNamed, 0, "")->position;
}

// Opens the draft again: nothing may be lost or refused.
void replay_all(TreeFixture& f) {
  f.reopen();
  for (const std::string& note : f.tree->recovery_notes()) CHECK(note == "");
  CHECK_FALSE(f.tree->read_only());
}

int write_to(TreeFixture& f, NodeId id, std::string_view text) {
  return f.err(f.tree->write(id, 0, std::as_bytes(std::span(text)), {}));
}

void forget_all(TreeFixture& f) {
  for (NodeId id : std::exchange(f.looked_up, {})) f.tree->forget(id, 1);
}

}  // namespace

TEST_CASE("a hard link in a directory that was rolled back is replayed") {
  TreeFixture f;
  f.base.mkdir("dir");
  f.base.write("one", "linked");
  stdfs::create_hard_link(f.base / "one", f.base / "dir/two");
  f.open();
  Position mark = marked(f);
  f.at("dir/two");
  f.create("dir/new");  // holds the directory
  REQUIRE(f.tree->rollback(mark));
  // The kernel has not forgotten dir/two yet.
  CHECK(f.write("one", "LINKED") == 0);
  CHECK(f.read("dir/two") == "LINKED");
  CHECK(f.attr("one").nlink == 2);
  replay_all(f);
  CHECK(f.read("one") == "LINKED");
  CHECK(f.read("dir/two") == "LINKED");
  CHECK(f.at("one") == f.at("dir/two"));
  CHECK(f.list("dir") == "two");
}

TEST_CASE("writing to what a rollback took away does not reach what it was") {
  TreeFixture f;
  f.open();
  Position none = marked(f);
  f.create("file", "as it was");
  NodeId id = f.at("file");
  Position there = marked(f);
  REQUIRE(f.tree->rollback(none));
  CHECK(write_to(f, id, "LATE") == 0);
  CHECK(f.read(id) == "LATEt was");
  REQUIRE(f.tree->rollback(there));
  CHECK(f.read("file") == "as it was");
  // What came back is written to in its turn, and again after a mark.
  CHECK(f.write("file", "NOW") == 0);
  marked(f);
  CHECK(f.write("file", "THEN") == 0);
  REQUIRE(f.tree->rollback(there));
  CHECK(f.read("file") == "as it was");
  CHECK(f.truncate("file", 2) == 0);
  REQUIRE(f.tree->rollback(none));
  replay_all(f);
  REQUIRE(f.tree->rollback(there));
  CHECK(f.read("file") == "as it was");
}

TEST_CASE("what a rollback took away and nobody knows any more comes back") {
  TreeFixture f;
  f.open();
  Position none = marked(f);
  f.mkdir("dir");
  f.create("dir/file", "as it was");
  f.create("forgotten", "this, too");
  forget_all(f);
  f.at("dir/file");
  Position there = marked(f);
  for (int i = 0; i < 3; ++i) {
    REQUIRE(f.tree->rollback(none));
    CHECK(f.list("") == "");
    if (i == 1) {  // dropped with the next record that is written
      forget_all(f);
      REQUIRE(f.create("other", "o") == 0);
    }
    REQUIRE(f.tree->rollback(there));
    CHECK(f.list("") == "dir forgotten");
    CHECK(f.read("dir/file") == "as it was");
    CHECK(f.read("forgotten") == "this, too");
  }
  replay_all(f);
  CHECK(f.read("dir/file") == "as it was");
}

TEST_CASE("what is open over a rollback is written to and replayed") {
  TreeFixture f;
  f.base.mkdir("dir");
  f.base.write("dir/low", "low");
  f.base.write("dir/held", "held");
  f.open();
  Position mark = marked(f);
  f.create("new", "new");
  f.mkdir("made");
  f.create("made/in", "in");
  f.write("dir/held", "HELD");
  NodeId fresh = f.at("new"), in = f.at("made/in"), low = f.at("dir/low"),
         held = f.at("dir/held"), made = f.at("made"), dir = f.at("dir");
  REQUIRE(f.tree->rollback(mark));
  for (NodeId id : {fresh, in, held}) {
    CHECK(write_to(f, id, "late") == 0);
    CHECK(f.read(id).starts_with("late"));
    CHECK(f.tree->setattr(id, {.set = kSetMode, .mode = 0600}, f.caller));
    CHECK(f.tree->setxattr(id, "user.x", "y", 0, f.caller));
  }
  write_to(f, low, "late");
  CHECK_FALSE(f.tree->mkdir(made, "sub", 0755, f.caller));
  f.tree->mkdir(dir, "sub", 0755, f.caller);
  replay_all(f);
  CHECK(f.at("new") == 0);
  CHECK(f.at("made") == 0);
}

TEST_CASE("what is unlinked and open over a checkpoint is replayed") {
  TreeFixture f;
  f.base.mkdir("dir");
  f.base.write("dir/low", "low");
  f.open();
  f.create("file", "one");
  NodeId file = f.at("file"), dir = f.at("dir");
  f.unlink("file");
  f.unlink("dir/low");
  f.rmdir("dir");
  auto nameless = f.tree->tmpfile(kRootId, 0600, f.caller);
  REQUIRE(nameless);
  REQUIRE(f.tree->checkpoint());
  CHECK(write_to(f, file, "two") == 0);
  CHECK(f.read(file) == "two");
  CHECK(f.tree->setattr(dir, {.set = kSetMode, .mode = 0700}, f.caller));
  CHECK(write_to(f, nameless->id, "given a name") == 0);
  CHECK(f.tree->link(nameless->id, kRootId, "named", f.caller));
  replay_all(f);
  CHECK(f.list("") == "named");
  CHECK(f.read("named") == "given a name");
  CHECK(f.tree->stats().touched_nodes == 1);
}

TEST_CASE("a file that was rolled back keeps its links apart from the held") {
  TreeFixture f;
  f.base.mkdir("dir");
  f.base.write("one", "linked");
  stdfs::create_hard_link(f.base / "one", f.base / "dir/two");
  f.open();
  Position mark = marked(f);
  f.write("one", "first!");
  NodeId first = f.at("one");
  REQUIRE(f.tree->rollback(mark));
  CHECK(write_to(f, first, "orphan") == 0);
  CHECK(f.read("one") == "linked");
  CHECK(f.write("dir/two", "second") == 0);
  CHECK(f.read("one") == "second");
  REQUIRE(f.tree->checkpoint());
  CHECK(write_to(f, first, "Orphan") == 0);
  CHECK(f.read(first) == "Orphan");
  replay_all(f);
  CHECK(f.read("one") == "second");
  CHECK(f.at("one") == f.at("dir/two"));
}

TEST_CASE("what is forgotten before its base was pinned is let go afterwards") {
  TreeFixture f;
  f.base.write("large", std::string(8u << 20, 'x'));
  f.open();
  NodeId id = f.at("large");
  CHECK(write_to(f, id, "y") == 0);
  CHECK(f.unlink("large") == 0);
  f.tree->forget(id, UINT32_MAX);
  REQUIRE(f.tree->settle());
  replay_all(f);
  CHECK(f.list("") == "");
}
