// SPDX-License-Identifier: Apache-2.0
#include "catch_shim.h"
#include "timeline_fixture.h"

using namespace stoplog;
using namespace stoplog::fs;
using namespace stoplog::test;
namespace stdfs = std::filesystem;

TEST_CASE("who looks again and nothing happened is given the same mark") {
  TreeFixture f;
  f.open();
  auto look = [&] {
    auto mark = f.tree->mark(MarkKind::kBarrier, 0, "");
    REQUIRE(mark);
    return mark->position;
  };
  f.create("a", "one");
  const Position first = look();
  CHECK(look() == first);
  // In place, had there been no mark in between.
  f.write("a", "two");
  const Position second = look();
  CHECK(second > first);
  CHECK(state_text(f, first, "a") == "one");
  CHECK(state_text(f, second, "a") == "two");
  // A mark with a name is another thing than a reader's.
  const Position named = marked(f);
  CHECK(named > second);
  CHECK(look() > named);
  CHECK(look() == f.tree->position());
  CHECK(f.tree->marks().size() == 4);
  // One of an older generation would keep that.
  const Position before = look();
  REQUIRE(f.tree->checkpoint());
  CHECK(look() > before);
}

TEST_CASE("a checkpoint keeps the tree and the older marks") {
  TreeFixture f;
  f.base.mkdir("d/e");
  f.base.write("d/e/low", "low");
  f.base.write("linked", "l");
  f.open();
  f.create("new", "one");
  f.rename("d/e", "e");
  f.link("linked", "second");
  Position old = marked(f);
  f.write("new", "two");
  f.unlink("e/low");
  uint64_t ino = f.attr("new").ino;
  REQUIRE(f.tree->checkpoint());
  f.create("after", "x");
  f.reopen();
  CHECK(f.list("") == "after d e linked new second");
  CHECK(f.list("e") == "");
  CHECK(f.read("new") == "two");
  CHECK(f.attr("new").ino == ino);
  CHECK(f.at("linked") == f.at("second"));
  CHECK(state_text(f, old, "new") == "one");
  CHECK(state_text(f, old, "e/low") == "low");
  CHECK(f.create("more") == 0);
  CHECK(f.attr("more").ino != ino);
}

TEST_CASE("a generation that no mark needs is removed") {
  TreeFixture f;
  f.open();
  f.create("a");
  REQUIRE(f.tree->checkpoint());
  f.create("b");
  REQUIRE(f.tree->checkpoint());
  size_t files = 0;
  for (const auto& e : stdfs::directory_iterator(f.draft / "journal"))
    files += e.is_regular_file() ? 1 : 0;
  CHECK(files == 1);
  f.reopen();
  CHECK(f.list("") == "a b");
}

TEST_CASE("rollback gives the tree of the mark and can itself be undone") {
  TreeFixture f;
  f.base.write("file", "base");
  f.base.mkdir("dir");
  f.base.write("dir/low", "low");
  f.open();
  f.write("file", "one!");
  f.create("first", "1");
  NodeId first = f.at("first");
  Position one = marked(f);
  f.write("file", "two!");
  f.unlink("first");
  f.create("second", "2");
  f.unlink("dir/low");
  f.rmdir("dir");
  NodeId second = f.at("second");
  Position two = marked(f);

  REQUIRE(f.tree->rollback(one));
  CHECK(f.list("") == "dir file first");
  CHECK(f.read("file") == "one!");
  CHECK(f.read("first") == "1");
  CHECK(f.read("dir/low") == "low");
  CHECK(f.at("first") == first);
  CHECK(f.read(second) == "2");  // as an unlinked file
  CHECK(f.tree->getattr(second)->attr.nlink == 0);
  f.write("file", "tri!");
  f.reopen();
  CHECK(f.read("file") == "tri!");
  CHECK(f.tree->marks().size() == 3);

  REQUIRE(f.tree->rollback(two));
  CHECK(f.list("") == "file second");
  CHECK(f.read("file") == "two!");
  REQUIRE(f.tree->rollback(one));
  CHECK(f.read("file") == "one!");
  f.reopen();
  CHECK(f.read("file") == "one!");
  CHECK(f.list("") == "dir file first");
  CHECK(state_text(f, two, "second") == "2");
  CHECK_FALSE(f.tree->rollback(one + 1));
}

TEST_CASE("a fork shares data and the two never show in each other") {
  TreeFixture f, g;
  f.base.write("low", "low");
  f.open();
  f.create("both", "shared");
  Position at = marked(f);
  f.create("later", "l");
  REQUIRE(f.tree->fork_into(g.draft.fd(), at));
  g.options.draft_dir = g.draft.fd();
  g.options.base = f.base.fd();
  auto opened = Tree::open(
      {.draft_dir = g.draft.fd(), .base = f.base.fd(), .background = false});
  REQUIRE(opened);
  g.tree = std::move(*opened);
  CHECK(g.list("") == "both low");
  CHECK(g.read("both") == "shared");
  CHECK(g.write("both", "SHARED") == 0);
  CHECK(f.write("both", "changed") == 0);
  CHECK(f.read("both") == "changed");
  CHECK(g.read("both") == "SHARED");
  CHECK(f.list("") == "both later low");
}

TEST_CASE("a large file is pinned and then safe from edits of the real one") {
  TreeFixture f;
  f.options.take_whole = 1000;
  std::string text(300000, 'b');
  f.base.write("big", text);
  f.open();
  CHECK(f.write("big", "X", 7) == 0);
  CHECK(f.tree->unpinned().size() == 1);
  REQUIRE(f.tree->settle());
  CHECK(f.tree->unpinned().empty());
  f.base.write("big", "short now");
  text[7] = 'X';
  CHECK(f.read("big") == text);
  f.reopen();
  CHECK(f.read("big") == text);
}

TEST_CASE("copies of large real files stay within the quota") {
  TreeFixture f;
  f.options.take_whole = 1000;
  f.options.quota = {.bytes = 500000};
  for (int i = 0; i < 4; ++i)
    f.base.write("big" + std::to_string(i), std::string(300000, 'b'));
  f.open();
  for (int i = 0; i < 4; ++i)
    CHECK(f.write("big" + std::to_string(i), "X", 7) == 0);
  f.looked_up.clear();
  f.tree.reset();
  f.options.background = true;
  REQUIRE(Tree::open(f.options));  // and closes: what is queued is done before
  f.open();
  // One of them found room, and the draft can still be written to.
  CHECK(f.tree->unpinned().size() == 3);
  CHECK(f.tree->stats().held_bytes <= 500000);
  CHECK(f.create("more", "text") == 0);
  CHECK(f.read("more") == "text");
  for (int i = 0; i < 4; ++i)
    CHECK(f.read("big" + std::to_string(i)).substr(5, 4) == "bbXb");
  // A commit may replace what they stand on: then they are copied.
  REQUIRE(f.tree->settle());
  CHECK(f.tree->unpinned().empty());
}

TEST_CASE("a flipped bit in sealed content is found") {
  TreeFixture f;
  f.open();
  f.create("file", std::string(5000, 'f'));
  marked(f);
  REQUIRE(f.tree->settle());
  CHECK(f.read("file") == std::string(5000, 'f'));
  f.tree.reset();
  for (const auto& e : stdfs::directory_iterator(f.draft / "segments")) {
    std::fstream file(e.path(), std::ios::in | std::ios::out);
    file.seekp(1234);
    file.put('X');
  }
  f.open();
  std::string out(10, '\0');
  auto n =
      f.tree->read(f.at("file"), 0, std::as_writable_bytes(std::span(out)));
  REQUIRE_FALSE(n);
  CHECK(n.error().code() == Code::kCorrupt);
  CHECK(n.error().err() == EIO);
}

TEST_CASE("a program that rewrites its file again and again stays small") {
  TreeFixture f;
  f.open();
  f.create("file");
  for (int i = 0; i < 50; ++i) {
    CHECK(f.truncate("file", 0) == 0);
    CHECK(f.write("file", std::string(200000, char('a' + i % 26))) == 0);
  }
  REQUIRE(f.tree->settle());
  uint64_t blocks = 0;
  for (const auto& e : stdfs::directory_iterator(f.draft / "segments")) {
    struct stat st;
    ::stat(e.path().c_str(), &st);
    blocks += uint64_t(st.st_blocks) * 512;
  }
  CHECK(blocks < 1000000);
  f.reopen();
  CHECK(f.read("file") == std::string(200000, char('a' + 49 % 26)));
}

TEST_CASE("a torn tail is cut and what was whole stays") {
  TreeFixture f;
  f.open();
  f.create("kept", "kept");
  f.create("torn", "torn");
  f.tree.reset();
  stdfs::path journal = f.draft / "journal" / "00000001";
  stdfs::resize_file(journal, stdfs::file_size(journal) - 5);
  f.open();
  CHECK(f.read("kept") == "kept");
  CHECK_FALSE(f.tree->recovery_notes().empty());
  CHECK_FALSE(f.tree->read_only());
  CHECK(f.create("next") == 0);
  f.reopen();
  CHECK(f.tree->recovery_notes().empty());
  CHECK(f.list("") == "kept next torn");
}

TEST_CASE("damage in the middle opens read-only and names what is lost") {
  TreeFixture f;
  f.open();
  for (int i = 0; i < 20; ++i) f.create("f" + std::to_string(i), "x");
  f.tree.reset();
  stdfs::path journal = f.draft / "journal" / "00000001";
  auto size = stdfs::file_size(journal);
  {
    std::fstream file(journal, std::ios::in | std::ios::out);
    file.seekp(std::streamoff(size / 2));
    file.write("DAMAGE", 6);
  }
  f.open();
  CHECK(f.tree->read_only());
  REQUIRE_FALSE(f.tree->recovery_notes().empty());
  CHECK(f.read("f0") == "x");
  CHECK(f.create("no") == EROFS);
  CHECK(stdfs::file_size(journal) == size);
}
