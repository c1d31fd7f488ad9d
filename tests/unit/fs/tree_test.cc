// SPDX-License-Identifier: Apache-2.0
#include "fs/tree.h"

#include <linux/fs.h>

#include <set>

#include "catch_shim.h"
#include "tree_fixture.h"

using namespace stoplog;
using namespace stoplog::fs;
using stoplog::test::TreeFixture;
namespace stdfs = std::filesystem;

TEST_CASE("an untouched tree shows the lower one and holds nothing") {
  TreeFixture f;
  f.base.mkdir("src/deep");
  f.base.write("src/main.c", "int main;");
  f.base.write("readme", "hello");
  f.open();
  CHECK(f.list("") == "readme src");
  CHECK(f.list("src") == "deep main.c");
  CHECK(f.read("src/main.c") == "int main;");
  struct stat st;
  REQUIRE(::stat((f.base / "readme").c_str(), &st) == 0);
  Attr attr = f.attr("readme");
  CHECK(attr.ino == st.st_ino);
  CHECK(attr.mtime.tv_nsec == st.st_mtim.tv_nsec);
  CHECK(attr.size == 5);
  CHECK(f.at("none") == 0);
  CHECK(f.last_errno == ENOENT);
  CHECK(f.tree->stats().touched_nodes == 0);
}

TEST_CASE("writes are held and the lower file never changes") {
  TreeFixture f;
  f.base.mkdir("d");
  f.base.write("d/file", "0123456789");
  struct stat before, after;
  ::stat((f.base / "d/file").c_str(), &before);
  f.open();
  uint64_t ino = f.attr("d/file").ino;
  CHECK(f.write("d/file", "AB", 3) == 0);
  CHECK(f.read("d/file") == "012AB56789");
  CHECK(f.write("d/file", "tail", 12) == 0);
  CHECK(f.read("d/file") == std::string("012AB56789\0\0tail", 16));
  CHECK(f.truncate("d/file", 4) == 0);
  CHECK(f.read("d/file") == "012A");
  CHECK(f.attr("d/file").ino == ino);
  ::stat((f.base / "d/file").c_str(), &after);
  CHECK(f.base.read("d/file") == "0123456789");
  CHECK(before.st_atim.tv_nsec == after.st_atim.tv_nsec);
  CHECK(before.st_mtim.tv_nsec == after.st_mtim.tv_nsec);
  f.reopen();
  CHECK(f.read("d/file") == "012A");
  CHECK(f.attr("d/file").ino == ino);
  CHECK(f.list("d") == "file");
}

TEST_CASE("new nodes come back after reopening with the same numbers") {
  TreeFixture f;
  f.base.mkdir("d");
  f.open();
  CHECK(f.create("d/new", "text") == 0);
  CHECK(f.mkdir("made") == 0);
  CHECK(f.create("made/in", "x") == 0);
  auto [dir, name] = f.place("link");
  CHECK(f.tree->symlink(dir, name, "made/in", f.caller));
  CHECK(f.create("d/new") == EEXIST);
  uint64_t ino = f.attr("d/new").ino;
  CHECK((ino >> 62) == 1);
  CHECK(f.attr("made").nlink == 2);
  CHECK(f.attr("d/new").mode == (S_IFREG | 0644));
  CHECK(f.attr("d/new").uid == 1000);
  timespec mtime = f.attr("d").mtime;
  f.reopen();
  CHECK(f.list("") == "d link made");
  CHECK(f.read("d/new") == "text");
  CHECK(f.attr("d/new").ino == ino);
  CHECK(*f.tree->readlink(f.at("link")) == "made/in");
  CHECK(f.attr("d").mtime.tv_nsec == mtime.tv_nsec);
  CHECK_FALSE(stdfs::exists(f.base / "made"));
  CHECK(f.create("again") == 0);
  CHECK(f.attr("again").ino != ino);
}

TEST_CASE("deleted lower names stay gone and a made directory is opaque") {
  TreeFixture f;
  f.base.mkdir("d/sub");
  f.base.write("d/a", "a");
  f.base.write("d/sub/b", "b");
  f.open();
  CHECK(f.attr("d").nlink == 3);
  CHECK(f.rmdir("d") == ENOTEMPTY);
  CHECK(f.rmdir("d/a") == ENOTDIR);
  CHECK(f.unlink("d/sub") == EISDIR);
  CHECK(f.unlink("d/a") == 0);
  CHECK(f.unlink("d/a") == ENOENT);
  CHECK(f.unlink("d/sub/b") == 0);
  CHECK(f.rmdir("d/sub") == 0);
  CHECK(f.attr("d").nlink == 2);
  CHECK(f.rmdir("d") == 0);
  CHECK(f.list("") == "");
  CHECK(f.mkdir("d") == 0);
  CHECK(f.list("d") == "");
  CHECK(f.at("d/a") == 0);
  f.reopen();
  CHECK(f.list("d") == "");
  CHECK(f.create("d/a", "mine") == 0);
  CHECK(f.read("d/a") == "mine");
  CHECK(f.base.read("d/a") == "a");
}

TEST_CASE("a lower directory is renamed with all beneath and nothing copied") {
  TreeFixture f;
  f.base.mkdir("a/x/y");
  f.base.write("a/x/y/file", "deep");
  f.base.write("a/top", "top");
  f.open();
  uint64_t ino = f.attr("a/x/y/file").ino;
  CHECK(f.rename("a", "b") == 0);
  CHECK(f.list("") == "b");
  CHECK(f.read("b/x/y/file") == "deep");
  CHECK(f.attr("b/x/y/file").ino == ino);
  CHECK(f.write("b/x/y/file", "D") == 0);
  CHECK(f.rename("b/x", "x") == 0);
  CHECK(f.read("x/y/file") == "Deep");
  CHECK(f.rename("b", "x/y/b") == 0);
  CHECK(f.read("x/y/b/top") == "top");
  CHECK(f.rename("x", "x/y/loop") == EINVAL);
  CHECK(f.tree->stats().held_bytes < 20);
  f.reopen();
  CHECK(f.read("x/y/b/top") == "top");
  CHECK(f.read("x/y/file") == "Deep");
  CHECK(f.list("") == "x");
  CHECK(f.mkdir("a") == 0);
  CHECK(f.list("a") == "");
}

TEST_CASE("rename replaces refuses and exchanges") {
  TreeFixture f;
  f.base.write("one", "1");
  f.base.write("two", "2");
  f.base.mkdir("full");
  f.base.write("full/x", "x");
  f.base.mkdir("empty");
  f.open();
  CHECK(f.rename("one", "two", RENAME_NOREPLACE) == EEXIST);
  CHECK(f.rename("one", "two", RENAME_EXCHANGE) == 0);
  CHECK(f.read("one") == "2");
  CHECK(f.read("two") == "1");
  CHECK(f.rename("one", "full") == EISDIR);
  CHECK(f.rename("full", "one") == ENOTDIR);
  CHECK(f.rename("empty", "full") == ENOTEMPTY);
  CHECK(f.rename("full", "empty") == 0);
  CHECK(f.read("empty/x") == "x");
  CHECK(f.rename("one", "two") == 0);
  CHECK(f.list("") == "empty two");
  CHECK(f.rename("none", "x") == ENOENT);
  CHECK(f.rename("two", "x", RENAME_EXCHANGE) == ENOENT);
  f.reopen();
  CHECK(f.list("") == "empty two");
  CHECK(f.read("two") == "2");
}

TEST_CASE("hard links stay links through writes also those of the lower") {
  TreeFixture f;
  f.base.write("a", "same");
  f.base.mkdir("d");
  stdfs::create_hard_link(f.base / "a", f.base / "d/b");
  f.open();
  CHECK(f.attr("a").nlink == 2);
  CHECK(f.at("a") == f.at("d/b"));
  CHECK(f.write("a", "S") == 0);
  CHECK(f.read("d/b") == "Same");
  CHECK(f.link("d/b", "c") == 0);
  CHECK(f.attr("a").nlink == 3);
  CHECK(f.unlink("a") == 0);
  CHECK(f.attr("c").nlink == 2);
  f.reopen();
  CHECK(f.read("c") == "Same");
  CHECK(f.read("d/b") == "Same");
  CHECK(f.at("c") == f.at("d/b"));
  CHECK(f.attr("c").nlink == 2);
  CHECK(f.base.read("a") == "same");
}

TEST_CASE("a second lower link is found when the first is already held") {
  TreeFixture f;
  f.base.write("a", "same");
  stdfs::create_hard_link(f.base / "a", f.base / "b");
  f.open();
  CHECK(f.write("a", "S") == 0);
  f.reopen();
  CHECK(f.read("b") == "Same");
  CHECK(f.unlink("b") == 0);
  CHECK(f.attr("a").nlink == 1);
}

TEST_CASE("an unlinked file lives until it is forgotten") {
  TreeFixture f;
  f.base.write("low", "lower");
  f.open();
  f.create("own", "own");
  NodeId low = f.at("low"), own = f.at("own");
  CHECK(f.unlink("low") == 0);
  CHECK(f.unlink("own") == 0);
  CHECK(f.read(low) == "lower");
  CHECK(f.read(own) == "own");
  CHECK(f.tree->getattr(own)->attr.nlink == 0);
  CHECK(f.tree->getattr(low)->attr.nlink == 0);
  std::string text = "L";
  CHECK(f.tree->write(low, 0, std::as_bytes(std::span(text)), {}));
  CHECK(f.read(low) == "Lower");
  CHECK(f.base.read("low") == "lower");
  f.tree->forget(own, 100);
  f.tree->forget(low, 100);
  CHECK(f.tree->getattr(own).error().err() == ESTALE);
  CHECK(f.create("next") == 0);
  f.reopen();
  CHECK(f.list("") == "next");
}

TEST_CASE("a large file is not copied for one byte") {
  TreeFixture f;
  f.options.take_whole = 1000;
  f.base.write("big", std::string(5000, 'b'));
  f.open();
  CHECK(f.write("big", "X", 5000) == 0);
  CHECK(f.write("big", "Y", 10) == 0);
  CHECK(f.tree->stats().held_bytes == 2);
  CHECK(f.tree->stats().unpinned_files == 1);
  std::string want(5000, 'b');
  want[10] = 'Y';
  want += 'X';
  CHECK(f.read("big") == want);
  SECTION("an edit of the lower file is drift and not mixed in") {
    f.base.write("big", std::string(6000, 'c'));
    std::string out(100, '\0');
    auto n =
        f.tree->read(f.at("big"), 0, std::as_writable_bytes(std::span(out)));
    REQUIRE_FALSE(n);
    CHECK(n.error().code() == Code::kDrift);
    CHECK(n.error().err() == EIO);
  }
  SECTION("it is the same after reopening") {
    f.reopen();
    CHECK(f.read("big") == want);
  }
}

TEST_CASE("holes and preallocation are seen by seeking") {
  TreeFixture f;
  f.open();
  f.create("file");
  NodeId id = f.at("file");
  f.write("file", "data", 100000);
  CHECK(f.attr("file").size == 100004);
  CHECK(*f.tree->lseek(id, 0, SEEK_DATA) == 100000);
  CHECK(*f.tree->lseek(id, 0, SEEK_HOLE) == 0);
  CHECK(f.tree->fallocate(id, 0, 0, 50));
  CHECK(*f.tree->lseek(id, 0, SEEK_HOLE) == 50);
  CHECK(f.tree->fallocate(id, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
                          100001, 2));
  CHECK(f.attr("file").size == 100004);
  std::string out(4, 'x');
  f.tree->read(id, 100000, std::as_writable_bytes(std::span(out)));
  CHECK(out == std::string("d\0\0a", 4));
  CHECK(f.tree->fallocate(id, FALLOC_FL_KEEP_SIZE, 200000, 10));
  CHECK(f.attr("file").size == 100004);
  CHECK(
      f.tree->fallocate(id, FALLOC_FL_COLLAPSE_RANGE, 0, 4096).error().err() ==
      EOPNOTSUPP);
  CHECK(f.tree->lseek(id, 100004, SEEK_DATA).error().err() == ENXIO);
}

TEST_CASE("a listing goes on after names before and behind it vanish") {
  TreeFixture f;
  for (int i = 0; i < 50; ++i) f.base.write("low" + std::to_string(i), "");
  f.open();
  for (int i = 0; i < 50; ++i) f.create("own" + std::to_string(i));
  std::set<std::string> seen;
  uint64_t cookie = 0;
  for (;;) {
    std::vector<std::string> block;
    auto listed =
        f.tree->readdir_plus(kRootId, cookie, [&](const DirItem& item) {
          if (block.size() == 7) return false;
          cookie = item.cookie;
          block.emplace_back(item.name);
          if (item.entry) CHECK(item.entry->attr.ino == item.ino);
          return true;
        });
    REQUIRE(listed);
    if (block.empty()) break;
    for (const std::string& name : block) {
      if (name == "." || name == "..") continue;
      CHECK(seen.insert(name).second);
      CHECK(f.unlink(name) == 0);
    }
  }
  CHECK(seen.size() == 100);
  CHECK(f.list("") == "");
}

TEST_CASE("the quota is ENOSPC and writeback has a reserve") {
  TreeFixture f;
  f.options.quota = {.bytes = 1000, .inodes = 3, .reserve = 500};
  f.open();
  CHECK(f.create("a", std::string(900, 'a')) == 0);
  CHECK(f.write("a", std::string(200, 'b'), 900) == ENOSPC);
  std::string text(200, 'c');
  CHECK(f.tree->write(f.at("a"), 900, std::as_bytes(std::span(text)),
                      {.writeback = true}));
  CHECK(f.create("b") == 0);
  CHECK(f.create("c") == 0);
  CHECK(f.create("d") == ENOSPC);
  CHECK(f.tree->stats().refused_bytes == 1);
  CHECK(f.tree->stats().refused_nodes == 1);
  CHECK(f.unlink("a") == 0);
  f.tree->forget(f.at("a"), 1);
}

TEST_CASE("nodes are dropped when the kernel forgets them") {
  TreeFixture f;
  f.base.mkdir("a/b/c");
  f.base.write("a/b/c/d", "x");
  f.open();
  uint64_t empty = f.tree->stats().live_nodes;
  std::vector<NodeId> ids;
  NodeId id = kRootId;
  for (const char* name : {"a", "b", "c", "d"})
    ids.push_back(id = f.tree->lookup(id, name)->id);
  CHECK(f.tree->stats().live_nodes == empty + 4);
  for (NodeId i : ids) f.tree->forget(i, 1);
  CHECK(f.tree->stats().live_nodes == empty);
  CHECK(f.tree->getattr(ids[0]).error().err() == ESTALE);
}

TEST_CASE("a mark costs one record and freezes what was written") {
  TreeFixture f;
  f.open();
  f.create("file", "one");
  uint64_t held = f.tree->stats().held_bytes;
  f.write("file", "two");
  CHECK(f.tree->stats().held_bytes == held);
  auto mark = f.tree->mark(MarkKind::kCommandBegin, 7, "seven");
  REQUIRE(mark);
  CHECK(mark->id == 1);
  f.write("file", "six");
  CHECK(f.read("file") == "six");
  f.reopen();
  CHECK(f.read("file") == "six");
  REQUIRE(f.tree->marks().size() == 1);
  CHECK(f.tree->marks()[0].name == "seven");
  CHECK(f.tree->marks()[0].position == mark->position);
}
