// SPDX-License-Identifier: Apache-2.0
// What a commit did to the real tree is told to the draft (BaseMapRecord): what
// was committed is clean, the rest stays held.
#include <atomic>
#include <thread>

#include "catch_shim.h"
#include "fs/gc.h"
#include "timeline_fixture.h"

using namespace stoplog;
using namespace stoplog::fs;
using namespace stoplog::test;
namespace stdfs = std::filesystem;

TEST_CASE("after a commit what was committed is clean and keeps its number") {
  TreeFixture f;
  f.base.write("edit", "old");
  f.base.write("gone", "g");
  f.base.mkdir("d");
  f.open();
  f.write("edit", "new");
  f.create("d/made", "made");
  f.unlink("gone");
  uint64_t ino = f.attr("edit").ino;
  Position reviewed = marked(f);
  f.create("later", "later");
  f.write("d/made", "MADE");  // touched since
  std::vector<BaseChange> changes;
  changes.push_back(commit_file(f, "edit", "new"));
  changes.push_back(commit_file(f, "d/made", "made"));
  BaseChange removed;
  removed.path = *RelPath::parse("gone");
  removed.before = stat_of(f, "gone");
  stdfs::remove(f.base / "gone");
  changes.push_back(removed);
  REQUIRE(f.tree->commit_base(reviewed, changes));
  CHECK(changed_paths(f) == "d/made later");
  CHECK(f.read("edit") == "new");
  CHECK(f.attr("edit").ino == ino);
  CHECK(f.read("d/made") == "MADE");
  CHECK(f.at("gone") == 0);
  f.reopen();
  CHECK(changed_paths(f) == "d/made later");
  CHECK(f.attr("edit").ino == ino);
  // Clean means live: an edit of the real file shows.
  f.base.write("edit", "edited by hand");
  CHECK(f.read("edit") == "edited by hand");
  f.base.write("tmp", "saved by an editor");
  stdfs::rename(f.base / "tmp", f.base / "edit");
  CHECK(f.read("edit") == "saved by an editor");
  CHECK(state_text(f, kEnd, "edit") == "saved by an editor");
  CHECK(f.list("") == "d edit later");
  stdfs::remove(f.base / "edit");
  CHECK(f.at("edit") == 0);
  CHECK(f.list("") == "d later");
  CHECK(state_text(f, kEnd, "edit") == "<absent>");
  // And a name that was committed as removed is free again.
  f.base.write("gone", "back");
  CHECK(f.read("gone") == "back");
}

TEST_CASE("what was committed in part stays held over the new base") {
  TreeFixture f;
  f.base.write("edit", "1\n2\n3\n");
  f.base.write("old", "1\n2\n3\n");
  f.open();
  f.write("edit", "one\n2\nthree\n");
  f.create("new", "a\nb\n");
  f.write("old", "one\n2\nthree\n");
  f.rename("old", "moved");
  Position reviewed = marked(f);
  std::vector<BaseChange> changes = {commit_file(f, "edit", "one\n2\n3\n"),
                                     commit_file(f, "new", "a\n"),
                                     commit_file(f, "old", "one\n2\n3\n")};
  for (BaseChange& change : changes) change.rest_held = true;
  REQUIRE(f.tree->commit_base(reviewed, changes));
  auto holds = [&] {
    CHECK(changed_paths(f) == "edit moved new");
    CHECK(f.read("edit") == "one\n2\nthree\n");
    CHECK(f.read("new") == "a\nb\n");
    CHECK(f.read("moved") == "one\n2\nthree\n");
    CHECK(f.at("old") == 0);
    for (const char* name : {"edit", "new", "moved"})
      CHECK(f.attr(name).nlink == 1);
    auto list = raw_changes(f);
    REQUIRE(list);
    for (const RawChange& change : *list) {
      INFO(change.path.str());
      CHECK(!change.drift);
      REQUIRE(change.before);
      CHECK(change.before->size == (change.path.str() == "new" ? 2u : 8u));
    }
  };
  holds();
  f.reopen();
  holds();
  // Taken back, the whole change is held again over what stood there first.
  std::vector<BaseChange> back = {commit_file(f, "edit", "1\n2\n3\n")};
  BaseChange removed;
  removed.path = *RelPath::parse("new");
  removed.before = stat_of(f, "new");
  stdfs::remove(f.base / "new");
  back.push_back(removed);
  for (BaseChange& change : back) change.rest_held = true;
  REQUIRE(f.tree->commit_base(reviewed, back));
  f.reopen();
  CHECK(changed_paths(f) == "edit moved new");
  CHECK(f.read("edit") == "one\n2\nthree\n");
  CHECK(f.read("new") == "a\nb\n");
  CHECK(f.attr("new").nlink == 1);
}

TEST_CASE("a file edited before and after the review keeps its link count") {
  TreeFixture f;
  f.base.write("edit", "old");
  f.open();
  f.write("edit", "new");
  Position reviewed = marked(f);
  f.write("edit", "newer");
  std::vector<BaseChange> changes = {commit_file(f, "edit", "new")};
  REQUIRE(f.tree->commit_base(reviewed, changes));
  CHECK(f.read("edit") == "newer");
  CHECK(f.attr("edit").nlink == 1);
}

TEST_CASE("an undo after a rollback past its commit takes nothing held away") {
  TreeFixture f;
  f.base.write("edit", "v0");
  f.open();
  f.write("edit", "v1");
  f.create("made", "m1");
  Position older = marked(f);
  f.write("edit", "v2");
  f.write("made", "m2");
  Position reviewed = marked(f);
  BaseChange edit = commit_file(f, "edit", "v2");
  REQUIRE(
      f.tree->commit_base(reviewed, {{edit, commit_file(f, "made", "m2")}}));
  REQUIRE(f.tree->rollback(older));
  CHECK(f.read("edit") == "v1");
  BaseChange removed;
  removed.path = *RelPath::parse("made");
  removed.before = stat_of(f, "made");
  stdfs::remove(f.base / "made");
  REQUIRE(
      f.tree->commit_base(reviewed, {{commit_file(f, "edit", "v0"), removed}}));
  for (int i = 0; i < 2; ++i) {
    CHECK(changed_paths(f) == "edit made");
    CHECK(f.read("edit") == "v1");
    CHECK(f.read("made") == "m1");
    f.reopen();
  }
  // A later commit of the same is one of what was seen.
  reviewed = marked(f);
  REQUIRE(f.tree->commit_base(reviewed, {{commit_file(f, "edit", "v1"),
                                          commit_file(f, "made", "m1")}}));
  CHECK(changed_paths(f).empty());
}

// The turn of who asked for the rollback was given back before the daemon came
// to it.
TEST_CASE("a rollback that lands within a commit is not taken for reviewed") {
  TreeFixture f;
  f.base.write("edit", "v0");
  f.base.write("gone", "g0");
  f.open();
  f.write("edit", "v1");
  f.create("made", "m1");
  f.unlink("gone");
  Position older = marked(f);
  f.write("edit", "v2");
  f.write("made", "m2");
  f.create("gone", "g2");
  Position reviewed = marked(f);
  REQUIRE(f.tree->rollback(older));
  REQUIRE(f.tree->commit_base(
      reviewed, {{commit_file(f, "edit", "v2"), commit_file(f, "made", "m2"),
                  commit_file(f, "gone", "g2")}}));
  for (int i = 0; i < 2; ++i) {
    CHECK(changed_paths(f) == "edit gone made");
    CHECK(f.read("edit") == "v1");
    CHECK(f.read("made") == "m1");
    f.reopen();
  }
}

TEST_CASE("going back past a discard or a commit of a mode needs no content") {
  TreeFixture f;
  f.base.write("dropped", "content");
  f.base.write("mode", "content");
  f.open();
  Position start = marked(f);
  f.write("dropped", "CONTENT");
  REQUIRE(
      f.tree->setattr(f.at("mode"), {.set = kSetMode, .mode = 0600}, f.caller));
  Position reviewed = marked(f);
  BaseChange mode{.path = *RelPath::parse("mode")};
  mode.before = stat_of(f, "mode");
  stdfs::permissions(f.base / "mode", stdfs::perms(0600));
  mode.now = stat_of(f, "mode");
  BaseChange dropped{.path = *RelPath::parse("dropped")};
  dropped.before = dropped.now = stat_of(f, "dropped");
  REQUIRE(f.tree->commit_base(reviewed, std::vector{dropped, mode}));
  CHECK(changed_paths(f) == "");
  auto back = f.tree->rollback(start);
  if (!back) FAIL(back.error().text());
  CHECK(f.read("dropped") == "content");
  CHECK(f.read("mode") == "content");
  CHECK((f.attr("mode").mode & 07777) == 0644);
  CHECK(changed_paths(f) == "mode");
  f.reopen();
  CHECK((f.attr("mode").mode & 07777) == 0644);
  CHECK(f.read("mode") == "content");
}

TEST_CASE("going back past the undo of a mode gives the mode again") {
  TreeFixture f;
  f.base.write("mode", "content");
  f.open();
  REQUIRE(
      f.tree->setattr(f.at("mode"), {.set = kSetMode, .mode = 0600}, f.caller));
  auto becomes = [&](int mode) {
    Position reviewed = marked(f);
    BaseChange change{.path = *RelPath::parse("mode")};
    change.before = stat_of(f, "mode");
    stdfs::permissions(f.base / "mode", stdfs::perms(mode));
    change.now = stat_of(f, "mode");
    REQUIRE(f.tree->commit_base(reviewed, std::vector{change}));
    CHECK(changed_paths(f) == "");
  };
  becomes(0600);
  Position committed = marked(f);
  becomes(0644);
  CHECK((f.attr("mode").mode & 07777) == 0644);
  REQUIRE(f.tree->rollback(committed));
  CHECK((f.attr("mode").mode & 07777) == 0600);
  CHECK(f.read("mode") == "content");
  CHECK(changed_paths(f) == "mode");
}

TEST_CASE("a committed new directory with its files is clean") {
  TreeFixture f;
  f.open();
  f.mkdir("dir");
  f.create("dir/a", "a");
  Position reviewed = marked(f);
  f.base.mkdir("dir");
  std::vector<BaseChange> changes;
  changes.push_back(commit_file(f, "dir/a", "a"));
  changes.back().before.reset();
  BaseChange dir;
  dir.path = *RelPath::parse("dir");
  dir.now = stat_of(f, "dir");
  changes.push_back(dir);
  REQUIRE(f.tree->commit_base(reviewed, changes));
  CHECK(changed_paths(f) == "");
  CHECK(f.list("dir") == "a");
  CHECK(f.attr("dir").nlink == 2);
  f.base.write("dir/b", "b");
  CHECK(f.list("dir") == "a b");
}

TEST_CASE("a committed move of a directory is clean and its edits stay held") {
  TreeFixture f;
  f.base.mkdir("a/sub");
  f.base.write("a/sub/x", "x");
  f.base.write("a/y", "y");
  f.open();
  f.rename("a", "b");
  Position reviewed = marked(f);
  f.write("b/sub/x", "X");
  BaseChange moved;
  moved.before = stat_of(f, "a");
  stdfs::rename(f.base / "a", f.base / "b");
  moved.path = *RelPath::parse("b");
  moved.from = *RelPath::parse("a");
  moved.now = stat_of(f, "b");
  REQUIRE(f.tree->commit_base(reviewed, {{moved}}));
  CHECK(changed_paths(f) == "b/sub/x");
  CHECK(f.read("b/sub/x") == "X");
  CHECK(f.read("b/y") == "y");
  f.reopen();
  CHECK(f.list("") == "b");
  CHECK(changed_paths(f) == "b/sub/x");
  CHECK(f.read("b/sub/x") == "X");
}

// What a commit of a move does to the real tree, and says about it.
BaseChange commit_move(TreeFixture& f, const std::string& from,
                       const std::string& to) {
  BaseChange moved;
  moved.before = stat_of(f, from);
  stdfs::rename(f.base / from, f.base / to);
  moved.path = *RelPath::parse(to);
  moved.from = *RelPath::parse(from);
  moved.now = stat_of(f, to);
  return moved;
}

TEST_CASE("what was moved on while its move was committed has one place") {
  TreeFixture f;
  for (const char* name : {"d/e/f1", "d/e/f2", "d/one", "p/other"}) {
    f.base.mkdir(std::string(name).substr(0, std::string(name).rfind('/')));
    f.base.write(name, "old");
  }
  f.open();
  f.write("d/e/f2", "XYZ");
  std::string first = "d/g", later = "d/e";
  SECTION("back") {}
  SECTION("to another directory") { first = "p/g"; }
  SECTION("from there") {
    first = "p/g";
    later = "d/h";
  }
  f.rename("d/e", first);
  f.rename("d/one", "d/two");
  Position reviewed = marked(f);
  f.rename(first, later);
  f.rename("d/two", "d/three");
  std::vector<BaseChange> changes = {commit_move(f, "d/e", first),
                                     commit_move(f, "d/one", "d/two"),
                                     commit_file(f, first + "/f2", "XYZ")};
  REQUIRE(f.tree->commit_base(reviewed, changes));
  auto check = [&] {
    CHECK(f.list("d") == later.substr(2) + " three");
    CHECK(f.list("p") == "other");
    CHECK(f.list(later) == "f1 f2");
    CHECK(f.read(later + "/f1") == "old");
    CHECK(f.read(later + "/f2") == "XYZ");
    CHECK(f.read("d/three") == "old");
    CHECK(f.attr("d").nlink == 3);
    CHECK(f.attr("p").nlink == 2);
  };
  check();
  f.reopen();
  check();
  // Where the commit put them: nothing is left of the moves.
  f.rename(later, first);
  f.rename("d/three", "d/two");
  CHECK(changed_paths(f) == first + "/f2");
}

TEST_CASE("after commit and undo the draft shows the real tree") {
  TreeFixture f;
  f.base.write("HACKING.md", "hack");
  f.base.mkdir("old");
  f.base.write("old/in", "in");
  f.open();
  f.create("new.txt", "new");
  f.mkdir("dir");
  f.create("dir/x", "x");
  f.rename("HACKING.md", "HACK.md");
  f.rename("old", "young");
  Position reviewed = marked(f);
  auto path = [](const char* text) { return *RelPath::parse(text); };
  std::vector<BaseChange> commit, undo;
  f.base.mkdir("dir");
  for (const char* name : {"new.txt", "dir/x"}) {
    commit.push_back(
        commit_file(f, name, name == std::string("dir/x") ? "x" : "new"));
    commit.back().before.reset();
    undo.push_back({.path = path(name), .before = stat_of(f, name)});
  }
  commit.push_back({.path = path("dir"), .now = stat_of(f, "dir")});
  undo.push_back({.path = path("dir"), .before = stat_of(f, "dir")});
  auto move = [&](const char* from, const char* to,
                  std::vector<BaseChange>& list) {
    BaseChange change{.path = path(to), .from = path(from)};
    change.before = stat_of(f, from);
    stdfs::rename(f.base / from, f.base / to);
    change.now = stat_of(f, to);
    list.push_back(change);
  };
  move("HACKING.md", "HACK.md", commit);
  move("old", "young", commit);
  REQUIRE(f.tree->commit_base(reviewed, commit));
  CHECK(changed_paths(f) == "");
  CHECK(f.list("") == "HACK.md dir new.txt young");
  CHECK(f.attr("").nlink == stat_of(f, ".").nlink);
  CHECK(f.read("young/in") == "in");
  Position then = marked(f);
  stdfs::remove_all(f.base / "dir");
  stdfs::remove(f.base / "new.txt");
  move("HACK.md", "HACKING.md", undo);
  move("young", "old", undo);
  REQUIRE(f.tree->commit_base(then, undo));
  CHECK(changed_paths(f) == "");
  CHECK(f.list("") == "HACKING.md old");
  CHECK(f.read("HACKING.md") == "hack");
  CHECK(f.read("old/in") == "in");
  CHECK(f.attr("").nlink == stat_of(f, ".").nlink);
  f.reopen();
  CHECK(changed_paths(f) == "");
  CHECK(f.list("") == "HACKING.md old");
  CHECK(f.create("new.txt", "again") == 0);
  CHECK(changed_paths(f) == "new.txt");
}

TEST_CASE("what was deleted in a directory that moved stays deleted") {
  TreeFixture f;
  f.base.mkdir("deep/one");
  f.base.write("deep/one/gone", "g");
  f.base.write("deep/one/kept", "k");
  f.open();
  f.unlink("deep/one/gone");
  f.rename("deep", "moved");
  Position reviewed = marked(f);
  BaseChange gone{.path = *RelPath::parse("deep/one/gone")};
  gone.before = stat_of(f, "deep/one/gone");
  BaseChange move{.path = *RelPath::parse("moved")};
  move.from = *RelPath::parse("deep");
  move.before = stat_of(f, "deep");
  stdfs::remove(f.base / "deep/one/gone");
  stdfs::rename(f.base / "deep", f.base / "moved");
  move.now = stat_of(f, "moved");
  REQUIRE(f.tree->commit_base(reviewed, std::vector{gone, move}));
  CHECK(changed_paths(f) == "");
  CHECK(f.list("moved/one") == "kept");
  f.base.write("moved/one/gone", "anew");
  CHECK(f.list("moved/one") == "gone kept");
  f.reopen();
  CHECK(changed_paths(f) == "");
  CHECK(f.list("moved/one") == "gone kept");
}

// A commit copies the new base of what stays held, and nothing knows of that
// copy but the one who makes it.
TEST_CASE("a gc beside a commit leaves the base that is being copied") {
  TreeFixture f;
  f.options.take_whole = 1000;
  std::string text(24u << 20, 'a');
  f.base.write("big", text);
  f.open();
  f.write("big", "X");
  for (int round = 0; round < 3; ++round) {
    REQUIRE(f.tree->settle());
    Position reviewed = marked(f);
    text.assign(text.size(), static_cast<char>('b' + round));
    BaseChange change = commit_file(f, "big", text);
    change.rest_held = true;
    std::atomic<bool> done{false};
    std::atomic<int> failed{0};
    std::jthread beside([&] {
      while (!done)
        if (!f.tree->gc({})) ++failed;
    });
    CHECK(f.tree->commit_base(reviewed, {{change}}));
    done = true;
    beside.join();
    CHECK(failed == 0);
    auto list = raw_changes(f);
    REQUIRE(list);
    REQUIRE(list->size() == 1);
    REQUIRE(list->front().before);
    f.base.write("big", "moved on");  // what was kept must do
    std::string kept(text.size(), '\0');
    auto n = list->front().before->content->read(
        0, std::as_writable_bytes(std::span(kept)));
    INFO((n ? std::string() : n.error().text()));
    CHECK(n == text.size());
    CHECK(kept == text);
  }
}
