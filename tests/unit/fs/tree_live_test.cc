// SPDX-License-Identifier: Apache-2.0
// The real tree moves on beneath a tree, and rules hold over it.
#include "fs/tree.h"

#include <linux/fs.h>

#include "catch_shim.h"
#include "tree_fixture.h"

using namespace stoplog;
using namespace stoplog::fs;
using stoplog::test::TreeFixture;
namespace stdfs = std::filesystem;

TEST_CASE("a lower file that is edited shows while it is untouched") {
  TreeFixture f;
  f.base.write("file", "old");
  f.open();
  CHECK(f.read("file") == "old");
  f.base.write("tmp", "new content");
  stdfs::rename(f.base / "tmp", f.base / "file");
  CHECK(f.read("file") == "new content");
  CHECK(f.attr("file").size == 11);
}

// relatime moves an access time that is a day old, whatever it is read for.
TEST_CASE("reading and listing leave the access times of the real tree") {
  TreeFixture f;
  f.base.mkdir("dir");
  f.base.write("dir/file", "text");
  const timespec old[2] = {{.tv_sec = 1000, .tv_nsec = 0},
                           {.tv_sec = 1000, .tv_nsec = 0}};
  for (const char* name : {"dir/file", "dir", "."})
    REQUIRE(::utimensat(f.base.fd(), name, old, 0) == 0);
  f.open();
  CHECK(f.list("") == "dir");
  CHECK(f.list("dir") == "file");
  CHECK(f.read("dir/file") == "text");
  f.write("dir/file", "TEXT");
  CHECK(f.list("dir") == "file");
  for (const char* name : {"dir/file", "dir", "."}) {
    INFO(name);
    CHECK(sys::statat(f.base.fd(), name)->atime.tv_sec == 1000);
  }
}

namespace {

struct Told : Observer {
  std::vector<Invalidation> what;
  std::vector<DriftNote> notes;
  std::vector<std::string> denials;
  void invalidate(std::span<const Invalidation> list) override {
    what.insert(what.end(), list.begin(), list.end());
  }
  void drift(const DriftNote& note) override { notes.push_back(note); }
  void denied(const Denial& denial) override { denials.push_back(denial.path); }
  bool has(Invalidation::Kind kind, NodeId node, std::string_view name = "") {
    for (const Invalidation& i : what)
      if (i.kind == kind && i.node == node && i.name == name) return true;
    return false;
  }
};

// The file that an id stands for and what the host did to its name.
void goes_on(TreeFixture& f, NodeId id, Told& told, std::string_view name) {
  f.tree->lower_changed(kRootId, name);
  f.at(name);  // what stands there now gets an id of its own
  INFO(name);
  CHECK(f.read(id) == "as it was");
  auto entry = f.tree->getattr(id);
  REQUIRE(entry);
  CHECK(entry->attr.size == 9);
  CHECK_FALSE(told.has(Invalidation::Kind::kNode, id));
}

struct SomeRules : PathRules {
  bool empty() const override { return false; }
  bool hides() const override { return true; }
  Rule rule(std::string_view path, bool) const override {
    if (path == "hidden") return Rule::kHide;
    if (path == ".env") return Rule::kMask;
    if (path == "denied") return Rule::kDeny;
    if (path == "ro" || path.starts_with("ro/")) return Rule::kReadOnly;
    return Rule::kNone;
  }
  Rule evaded(std::string_view, std::string_view to) const override {
    return to == "deep" ? Rule::kReadOnly : Rule::kNone;
  }
  std::string_view mask_content(std::string_view) const override {
    return "masked\n";
  }
};

}  // namespace

TEST_CASE("a file that is open outlives what the host does to its name") {
  TreeFixture f;
  Told told;
  for (const char* name : {"replaced", "removed", "moved"})
    f.base.write(name, "as it was");
  f.options.observer = &told;
  f.open();
  NodeId replaced = f.at("replaced"), removed = f.at("removed"),
         moved = f.at("moved");
  for (NodeId id : {replaced, removed, moved}) CHECK(f.read(id) == "as it was");
  f.base.write("new", "new content");
  stdfs::rename(f.base / "new", f.base / "replaced");
  stdfs::remove(f.base / "removed");
  stdfs::rename(f.base / "moved", f.base / "there");
  goes_on(f, replaced, told, "replaced");
  goes_on(f, removed, told, "removed");
  goes_on(f, moved, told, "moved");
  CHECK(f.read("replaced") == "new content");
  CHECK(f.at("removed") == 0);
  CHECK(f.read("there") == "as it was");
  // Written to as any file without a name; a moved one would lose it.
  auto late = std::as_bytes(std::span("late", 4));
  CHECK(f.tree->getattr(removed)->attr.nlink == 0);
  CHECK(f.tree->write(removed, 0, late, {}));
  CHECK(f.tree->write(replaced, 0, late, {}));
  CHECK(f.read(removed) == "latet was");
  CHECK(f.err(f.tree->write(moved, 0, late, {})) == ESTALE);
  CHECK(f.read("replaced") == "new content");
  CHECK(f.base.read("there") == "as it was");
  f.reopen();
  CHECK(f.tree->recovery_notes().empty());
  CHECK(f.read("replaced") == "new content");
}

TEST_CASE("what was not read before the host took it away is refused") {
  TreeFixture f;
  const std::vector<const char*> names{"replaced", "removed", "moved"};
  for (const char* name : names) f.base.write(name, "as it was");
  f.open();
  std::vector<NodeId> ids;
  for (const char* name : names) ids.push_back(f.at(name));
  f.base.write("new", "new content");
  stdfs::rename(f.base / "new", f.base / "replaced");
  stdfs::remove(f.base / "removed");
  stdfs::rename(f.base / "moved", f.base / "there");
  std::vector<std::byte> bytes(100);
  for (NodeId id : ids) {
    CHECK(f.err(f.tree->read(id, 0, bytes)) == EIO);
    CHECK(f.err(f.tree->write(id, 0, bytes, {})) == ESTALE);
  }
  CHECK(f.read("replaced") == "new content");
}

TEST_CASE("edits of the real tree become invalidations and drift") {
  TreeFixture f;
  Told told;
  f.options.observer = &told;
  f.base.write("same", "1");
  f.base.write("gone", "2");
  f.base.write("held", "3");
  f.base.mkdir("d");
  f.open();
  NodeId same = f.at("same");
  f.at("gone");
  NodeId d = f.at("d");
  CHECK(f.write("held", "H") == 0);
  f.base.write("same", "longer");
  stdfs::remove(f.base / "gone");
  f.base.write("held", "edited");
  f.base.write("fresh", "x");
  for (const char* name : {"same", "gone", "held", "fresh"})
    f.tree->lower_changed(kRootId, name);
  CHECK(told.has(Invalidation::Kind::kNode, same));
  CHECK(told.has(Invalidation::Kind::kDrop, kRootId, "gone"));
  CHECK(told.has(Invalidation::Kind::kExpire, kRootId, "fresh"));
  REQUIRE(told.notes.size() == 1);
  CHECK(told.notes[0].path.str() == "held");
  CHECK(f.read("held") == "H");
  stdfs::rename(f.base / "d", f.base / "e");
  f.tree->lower_changed(kRootId, "d");
  CHECK(told.has(Invalidation::Kind::kDrop, kRootId, "d"));
  CHECK(f.at("d") == 0);
  CHECK(f.at("e") != d);
  f.tree->lower_changed_everywhere();
  f.tree->lower_changed(kRootId, "");
}

TEST_CASE("a change through a name that came and went takes old content back") {
  TreeFixture f;
  Told told;
  f.options.observer = &told;
  f.base.write("file", "old");
  f.base.mkdir("d");
  f.open();
  NodeId file = f.at("file");
  NodeId d = f.at("d");
  CHECK(f.read("file") == "old");
  stdfs::create_hard_link(f.base / "file", f.base / "d/other");
  f.base.write("d/other", "new");  // as long as it was
  stdfs::remove(f.base / "d/other");
  // All that the watches have to tell.
  f.tree->lower_changed(d, "other");
  CHECK_FALSE(told.has(Invalidation::Kind::kNode, file));
  REQUIRE(f.tree->getattr(file));
  CHECK(told.has(Invalidation::Kind::kNode, file));
  told.what.clear();
  REQUIRE(f.tree->getattr(file));
  CHECK(f.at("file") == file);
  CHECK_FALSE(told.has(Invalidation::Kind::kNode, file));
  // What an event told is not told again.
  f.base.write("file", "more");
  f.tree->lower_changed(kRootId, "file");
  CHECK(told.has(Invalidation::Kind::kNode, file));
  told.what.clear();
  REQUIRE(f.tree->getattr(file));
  CHECK_FALSE(told.has(Invalidation::Kind::kNode, file));
}

TEST_CASE("a lower directory that vanishes keeps what the draft holds in it") {
  TreeFixture f;
  Told told;
  f.options.observer = &told;
  f.base.mkdir("d/sub");
  f.base.write("d/sub/low", "x");
  f.open();
  CHECK(f.create("d/sub/new", "mine") == 0);
  stdfs::remove_all(f.base / "d");
  f.reopen();
  CHECK(f.list("d/sub") == "new");
  CHECK(f.read("d/sub/new") == "mine");
  CHECK(f.at("d/sub/low") == 0);
  CHECK_FALSE(told.notes.empty());
}

TEST_CASE("a directory that the host touches says nothing of what is in it") {
  TreeFixture f;
  Told told;
  f.options.observer = &told;
  for (const char* dir : {"d", "held"}) {
    f.base.mkdir(dir);
    f.base.write(std::string(dir) + "/file", "x");
  }
  f.open();
  CHECK(f.create("held/mine") == 0);
  for (const char* dir : {"", "d", "held"}) {
    INFO(dir);
    NodeId file = f.at(*dir != 0 ? std::string(dir) + "/file" : "d");
    stdfs::permissions(f.base / dir, stdfs::perms::owner_all);
    told.what.clear();
    f.tree->lower_changed(f.at(dir), "");
    CHECK(told.has(Invalidation::Kind::kNode, f.at(dir)));
    CHECK_FALSE(told.has(Invalidation::Kind::kNode, file));
  }
}

TEST_CASE("a directory that was made anew shows where the draft holds one") {
  TreeFixture f;
  Told told;
  f.options.observer = &told;
  f.base.mkdir("d/sub");
  f.base.write("d/sub/low", "x");
  f.open();
  CHECK(f.create("d/sub/new", "mine") == 0);
  CHECK(f.list("d/sub") == "low new");
  NodeId sub = f.at("d/sub");
  stdfs::rename(f.base / "d", f.base / "away");
  f.base.mkdir("d/sub");
  f.base.write("d/sub/other", "y");
  f.tree->lower_changed(kRootId, "d");
  CHECK(f.list("d/sub") == "new other");
  CHECK(f.read("d/sub/new") == "mine");
  CHECK(f.at("d/sub") == sub);
  CHECK(std::ranges::any_of(told.what, [&](const Invalidation& i) {
    return i.node == sub && i.replaced;
  }));
  auto ref = f.tree->lower_ref(sub);
  REQUIRE(ref);
  CHECK(ref->any);
}

TEST_CASE("rules hide mask deny and protect by every route") {
  TreeFixture f;
  Told told;
  SomeRules rules;
  f.options.observer = &told;
  f.options.rules = &rules;
  f.base.write("hidden", "h");
  f.base.write(".env", "SECRET");
  f.base.write("denied", "d");
  f.base.mkdir("ro");
  f.base.write("ro/file", "r");
  f.base.mkdir("plain");
  f.open();
  CHECK(f.list("") == ".env denied plain ro");
  CHECK(f.at("hidden") == 0);
  CHECK(f.last_errno == ENOENT);
  CHECK(f.create("hidden", "x") == EACCES);
  CHECK(f.at("denied") == 0);
  CHECK(f.last_errno == EACCES);
  CHECK(f.read(".env") == "masked\n");
  CHECK(f.attr(".env").size == 7);
  CHECK(f.write(".env", "x") == EACCES);
  CHECK(f.rename(".env", "plain/env") == EACCES);
  CHECK(f.link(".env", "plain/env") == EACCES);
  CHECK(f.unlink(".env") == EACCES);
  CHECK(f.read("ro/file") == "r");
  CHECK(f.write("ro/file", "x") == EROFS);
  CHECK(f.create("ro/new") == EROFS);
  CHECK(f.rename("ro", "rw") == EROFS);
  CHECK(f.create("plain/x") == 0);
  CHECK(f.rename("plain/x", "hidden") == EACCES);
  CHECK(f.rename("plain", "deep") == EROFS);
  CHECK(f.mkdir("deep") == 0);
  CHECK(f.rename("plain", "deep", RENAME_EXCHANGE) == EROFS);
  CHECK(f.rename("deep", "plain", RENAME_EXCHANGE) == EROFS);
  CHECK(f.rename("plain/x", "deep/x") == 0);
  CHECK(told.denials.size() > 5);
  CHECK(f.tree->stats().denials == told.denials.size());
}

TEST_CASE("a rule holds at a name whatever other name of the file came first") {
  for (bool held : {false, true}) {
    INFO(held);
    TreeFixture f;
    Told told;
    SomeRules rules;
    f.options.observer = &told;
    f.options.rules = &rules;
    f.base.write(".env", "SECRET");
    f.base.mkdir("ro");
    f.base.write("ro/file", "kept");
    f.base.write("hidden", "h");
    f.base.mkdir("plain");
    stdfs::create_hard_link(f.base / ".env", f.base / "plain/a");
    stdfs::create_hard_link(f.base / "ro/file", f.base / "plain/b");
    stdfs::create_hard_link(f.base / "hidden", f.base / "plain/c");
    f.open();
    CHECK(f.attr("plain/a").size == 6);
    CHECK(f.attr("plain/b").size == 4);
    NodeId a = f.at("plain/a");
    if (held) {
      CHECK(f.rename("plain/a", "plain/a2") == 0);
      CHECK(f.rename("plain/b", "plain/b2") == 0);
      f.link("plain/a2", "plain/a");
      f.link("plain/b2", "plain/b");
    }
    auto obeyed = [&] {
      CHECK(f.read(".env") == "masked\n");
      CHECK(f.attr(".env").size == 7);
      CHECK(f.write(".env", "x") == EACCES);
      CHECK(f.rename(".env", "env") == EACCES);
      CHECK(f.read("ro/file") == "kept");
      CHECK(f.write("ro/file", "x") == EROFS);
      // What is not there takes nothing away.
      CHECK(f.at("hidden") == 0);
      CHECK(f.read("plain/c") == "h");
    };
    obeyed();
    CHECK(told.has(Invalidation::Kind::kNode, a));
    f.reopen();
    f.at("plain/a");
    f.at("plain/b");
    obeyed();
  }
}

// A commit moves all that was approved, and says so afterwards.
TEST_CASE("what a commit has moved can be read before the draft is told") {
  TreeFixture f;
  f.base.mkdir("d/e");
  f.base.write("d/e/x", "text");
  f.base.write("a", "plain");
  stdfs::create_symlink("target", f.base / "d/sym");
  f.open();
  CHECK(f.rename("d", "moved") == 0);
  CHECK(f.rename("a", "b") == 0);
  f.at("moved/e");
  f.forget_all();
  stdfs::rename(f.base / "d", f.base / "moved");
  stdfs::rename(f.base / "a", f.base / "b");
  // The kernel's cache is not asked here; neither is one of ours.
  f.tree->lower_changed_everywhere();
  CHECK(f.list("moved") == "e sym");
  CHECK(f.list("moved/e") == "x");
  CHECK(f.read("moved/e/x") == "text");
  CHECK(f.read("b") == "plain");
  CHECK(f.tree->readlink(f.at("moved/sym")).value_or("") == "target");
  // Another file in its place is not taken for it.
  stdfs::rename(f.base / "b", f.base / "kept");
  f.base.write("b", "somebody's");
  f.tree->lower_changed_everywhere();
  CHECK(f.read("b") != "somebody's");
}
