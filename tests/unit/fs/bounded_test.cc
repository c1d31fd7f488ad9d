// SPDX-License-Identifier: Apache-2.0
// What a program can make grow by doing the same again and again: on disk and
// in memory it stays within bounds, and all that it keeps is under the quota.
#include <fcntl.h>
#include <linux/falloc.h>
#include <sys/stat.h>

#include <random>

#include "catch_shim.h"
#include "timeline_fixture.h"

using namespace stoplog;
using namespace stoplog::fs;
using namespace stoplog::test;
namespace stdfs = std::filesystem;

namespace {

int set(TreeFixture& f, std::string_view path, const std::string& name,
        const std::string& value) {
  return f.err(f.tree->setxattr(f.at(path), name, value, 0, f.caller));
}

uint64_t disk_bytes(const TreeFixture& f) {
  uint64_t sum = 0;
  for (const auto& e : stdfs::recursive_directory_iterator(f.draft / "")) {
    struct stat st{};
    if (::lstat(e.path().c_str(), &st) == 0)
      sum += static_cast<uint64_t>(st.st_blocks) * 512;
  }
  return sum;
}

// The same number from nothing: as a new generation's records tell it.
void check_count(TreeFixture& f) {
  const uint64_t counted = f.tree->stats().beside_bytes;
  f.forget_all();
  REQUIRE(f.tree->checkpoint());
  f.reopen();
  CHECK(f.tree->stats().beside_bytes == counted);
}

void begin_command(TreeFixture& f) {
  REQUIRE(f.tree->mark(MarkKind::kCommandBegin, 1, ""));
}

constexpr uint64_t kBound = 48u << 20;

}  // namespace

TEST_CASE("extended attributes and symlinks are charged to the quota") {
  TreeFixture f;
  f.options.quota = {.bytes = 100'000, .inodes = 100, .reserve = 50'000};
  f.open();
  REQUIRE(f.create("file", std::string(50'000, 'x')) == 0);
  CHECK(set(f, "file", "user.a", std::string(40'000, 'a')) == 0);
  CHECK(set(f, "file", "user.b", std::string(20'000, 'b')) == ENOSPC);
  CHECK(f.write("file", std::string(20'000, 'y'), 50'000) == ENOSPC);
  CHECK(f.tree->stats().refused_bytes == 2);
  // Only what is more counts.
  CHECK(set(f, "file", "user.a", std::string(45'000, 'c')) == 0);
  CHECK(set(f, "file", "user.a", std::string(30'000, 'd')) == 0);
  CHECK(f.tree->stats().beside_bytes == 30'006);
  auto st = f.tree->statfs();
  REQUIRE(st);
  CHECK(st->f_bfree * st->f_frsize <= 20'480);
  CHECK(set(f, "file", "user.b", std::string(19'000, 'b')) == 0);
  const std::string target(1000, 't');
  CHECK(f.err(f.tree->symlink(kRootId, "link", target, f.caller)) == ENOSPC);
  REQUIRE(f.tree->removexattr(f.at("file"), "user.b"));
  CHECK(f.known(f.tree->symlink(kRootId, "link", target, f.caller)) == 0);
  CHECK(f.tree->stats().beside_bytes == 31'006);
  // What carries nothing can be made on a full disk.
  CHECK(f.write("file", std::string(18'000, 'y'), 50'000) == 0);
  CHECK(f.create("empty") == 0);
  CHECK(f.mkdir("dir") == 0);
  REQUIRE(f.unlink("link") == 0);
  f.forget_all();
  REQUIRE(f.create("another") == 0);  // with this record the link is gone
  CHECK(f.tree->stats().beside_bytes == 30'006);
  check_count(f);
}

TEST_CASE("single bytes here and there are charged to the quota as ranges") {
  TreeFixture f;
  f.options.quota = {.bytes = 100'000, .inodes = 100, .reserve = 0};
  f.open();
  REQUIRE(f.create("file", "x") == 0);
  uint64_t made = 0;
  while (made < 50'000 && f.write("file", "y", 2 * ++made) == 0) {
  }
  CHECK(made > 1'000);
  CHECK(made < 2'000);
  CHECK(f.tree->stats().beside_bytes > 64'000);
  auto st = f.tree->statfs();
  REQUIRE(st);
  CHECK(st->f_bfree == 0);
  check_count(f);
  REQUIRE(f.truncate("file", 1001) == 0);
  CHECK(f.tree->stats().beside_bytes <= 500 * 64);
  check_count(f);
  REQUIRE(f.unlink("file") == 0);
  f.forget_all();
  REQUIRE(f.create("other", std::string(90'000, 'x')) == 0);
  CHECK(f.tree->stats().beside_bytes == 0);
}

TEST_CASE("ranges are counted through marks rollbacks commits and replay") {
  TreeFixture f;
  f.options.take_whole = 1000;
  f.base.write("low", std::string(10'000, 'l'));
  f.open();
  std::mt19937 random(7);
  auto below = [&](uint64_t n) { return random() % n; };
  std::vector<Position> marks = {marked(f)};
  for (int i = 0; i < 3000; ++i) {
    const char* name = below(2) == 0 ? "low" : "new";
    if (f.at(name) == 0) REQUIRE(f.create(name, "0123456789") == 0);
    const uint64_t what = below(40);
    if (what == 0) {
      REQUIRE(f.truncate(name, below(12'000)) == 0);
    } else if (what < 4) {
      const int how = below(2) == 0 ? FALLOC_FL_PUNCH_HOLE : 0;
      REQUIRE(f.tree->fallocate(f.at(name), how | FALLOC_FL_KEEP_SIZE,
                                below(9'000), 1 + below(500)));
    } else if (what == 4) {
      marks.push_back(marked(f));
    } else if (what == 5 && i % 8 == 0) {
      f.forget_all();
      REQUIRE(f.tree->rollback(marks[below(marks.size())]));
    } else if (what == 6 && i % 4 == 0) {
      REQUIRE(f.unlink(name) == 0);
    } else {
      REQUIRE(f.write(name, std::string(1 + below(30), 'w'), below(9'000)) ==
              0);
    }
    if (i % 300 != 299) continue;
    f.forget_all();
    REQUIRE(f.create("at " + std::to_string(i)) == 0);  // what is gone goes
    check_count(f);
  }
  const Position reviewed = marked(f);
  BaseChange change = commit_file(f, "low", "low");
  REQUIRE(f.tree->commit_base(reviewed, {&change, 1}));
  check_count(f);
}

TEST_CASE("what a commit of the top takes is given back to the quota") {
  TreeFixture f;
  f.options.quota = {.bytes = 100'000, .inodes = 100, .reserve = 50'000};
  f.open();
  for (int i = 0; i < 3; ++i) {
    REQUIRE(f.err(f.tree->setxattr(kRootId, "user.a", std::string(60'000, 'a'),
                                   0, f.caller)) == 0);
    BaseChange change;
    change.now = change.before = stat_of(f, ".");
    REQUIRE(f.tree->commit_base(marked(f), {{change}}));
    CHECK(f.tree->stats().beside_bytes == 0);
  }
  check_count(f);
}

TEST_CASE("further names of a file are charged to the quota of files") {
  TreeFixture f;
  f.options.quota = {.bytes = UINT64_MAX, .inodes = 10};
  f.open();
  REQUIRE(f.create("file") == 0);
  int made = 0;
  while (made < 100 && f.link("file", "n" + std::to_string(made)) == 0) ++made;
  CHECK(made >= 7);
  CHECK(made <= 10);
  CHECK(f.create("other") == ENOSPC);
  CHECK(f.tree->stats().refused_nodes == 2);
  for (int i = 0; i < 1000; ++i) {
    REQUIRE(f.unlink("n0") == 0);
    REQUIRE(f.link("file", "n0") == 0);
  }
}

TEST_CASE("what nodes carry is counted through rollback commit and replay") {
  TreeFixture f;
  f.base.write("low", "low");
  f.base.write("one", "1");
  stdfs::create_hard_link(f.base / "one", f.base / "two");
  f.open();
  CHECK(set(f, "low", "user.a", "1234") == 0);
  REQUIRE(f.create("new") == 0);
  CHECK(set(f, "new", "user.b", "12345678") == 0);
  CHECK(f.tree->stats().beside_bytes == 24);
  Position early = marked(f);
  CHECK(set(f, "new", "user.b", "1") == 0);
  CHECK(set(f, "one", "user.c", "12") == 0);
  CHECK(f.known(f.tree->symlink(kRootId, "sym", "12345", f.caller)) == 0);
  REQUIRE(f.link("new", "more") == 0);
  CHECK(f.tree->stats().beside_bytes == 10 + 7 + 8 + 5);
  Position late = marked(f);
  f.forget_all();  // what the kernel knows would stay, without a name
  REQUIRE(f.tree->rollback(early));
  CHECK(f.tree->stats().beside_bytes == 24);
  REQUIRE(f.tree->rollback(late));
  CHECK(f.tree->stats().beside_bytes == 30);
  Position reviewed = marked(f);
  BaseChange change = commit_file(f, "low", "low");
  REQUIRE(f.tree->commit_base(reviewed, {&change, 1}));
  CHECK(f.tree->stats().beside_bytes == 20);
  check_count(f);
  CHECK(f.unlink("new") == 0);
  CHECK(f.unlink("sym") == 0);
  CHECK(f.rename("more", "moved") == 0);
  f.forget_all();
  REQUIRE(f.create("last") == 0);
  CHECK(f.tree->stats().beside_bytes == 15);
  check_count(f);
}

TEST_CASE("an attribute that is set again and again always finds room") {
  TreeFixture f;
  f.options.quota = {.bytes = 1u << 20, .inodes = 100};
  f.open();
  REQUIRE(f.create("file") == 0);
  begin_command(f);
  NodeId id = f.at("file");
  // More than may be there in all, many times within a second.
  for (int i = 0; i < 5000; ++i) {
    std::string value(60'000, static_cast<char>('a' + i % 26));
    REQUIRE(f.tree->setxattr(id, "user.same", value, 0, f.caller));
    if (i % 200 == 0) REQUIRE(f.tree->settle());
  }
  REQUIRE(f.tree->settle());
  CHECK(f.tree->stats().beside_bytes == 60'009);
  CHECK(disk_bytes(f) < kBound);
}

TEST_CASE("files that are made and removed in a loop leave nothing behind") {
  TreeFixture f;
  f.base.write("low", "low");
  f.open();
  begin_command(f);
  const uint64_t nodes = f.tree->stats().touched_nodes;
  for (int i = 0; i < 100'000; ++i) {
    REQUIRE(f.create("made", "x") == 0);
    REQUIRE(f.rename("made", "moved") == 0);
    REQUIRE(f.unlink("moved") == 0);
    f.forget_all();
    if (i % 5000 == 0) REQUIRE(f.tree->settle());
  }
  REQUIRE(f.create("last") == 0);
  REQUIRE(f.tree->settle());
  CHECK(f.tree->stats().touched_nodes <= nodes + 2);
  CHECK(f.tree->stats().live_nodes <= 3);
  CHECK(f.tree->stats().dead_bytes == 0);
  CHECK(f.tree->changed_by_command() == 1);
  CHECK(disk_bytes(f) < kBound);
}

TEST_CASE("a file that moves to and fro leaves nothing behind") {
  TreeFixture f;
  f.base.mkdir("d");
  f.base.mkdir("e");
  f.base.write("d/low", "low");
  f.base.write("e/other", "other");
  f.open();
  begin_command(f);
  NodeId d = f.at("d"), e = f.at("e");
  for (int i = 0; i < 100'000; ++i) {
    REQUIRE(f.tree->rename(d, "low", e, "low", 0, f.caller));
    REQUIRE(f.tree->rename(e, "low", d, "low", 0, f.caller));
    if (i % 5000 == 0) REQUIRE(f.tree->settle());
  }
  REQUIRE(f.tree->settle());
  CHECK(f.tree->stats().touched_nodes <= 4);
  CHECK(f.tree->changed_by_command() == 0);
  CHECK(disk_bytes(f) < kBound);
}
