// SPDX-License-Identifier: Apache-2.0
// Going back by what is kept of the past: the same as a replay, whatever
// happened, in memory and on disk.
#include "fs/past.h"

#include <map>
#include <random>

#include "catch_shim.h"
#include "fs/gc.h"
#include "fs/replay.h"
#include "state_dump.h"
#include "timeline_fixture.h"

using namespace stoplog;
using namespace stoplog::fs;
using namespace stoplog::test;
namespace stdfs = std::filesystem;

namespace {

// Everything that a live tree shows. For an inode number stands the first path
// that has it: an untouched file shows another one while the kernel knows a
// removed file of that number.
std::string shown(TreeFixture& f, std::map<uint64_t, std::string>& inodes,
                  const std::string& dir) {
  std::string all;
  std::string list = f.list(dir);
  for (size_t at = 0; at < list.size();) {
    size_t end = std::min(list.find(' ', at), list.size());
    std::string path =
        dir + (dir.empty() ? "" : "/") + list.substr(at, end - at);
    at = end + 1;
    Attr a = f.attr(path);
    const std::string& first = inodes.try_emplace(a.ino, path).first->second;
    all +=
        fmt::format("{} {} {:o} {} {}", path, first, a.mode, a.nlink, a.size);
    if (S_ISREG(a.mode)) all += " " + f.read(path);
    all += "\n";
    if (S_ISDIR(a.mode)) all += shown(f, inodes, path);
  }
  return all;
}
std::string shown(TreeFixture& f) {
  std::map<uint64_t, std::string> inodes;
  return shown(f, inodes, "");
}

struct Life {
  explicit Life(unsigned seed) : random(seed) {
    f.options.take_whole = 100;
    f.base.mkdir("d/e");
    f.base.mkdir("q");
    f.base.write("a", "base of a");
    f.base.write("big", std::string(300, 'b'));
    f.base.write("d/c", "base of c");
    f.base.write("d/e/x", "base of x");
    stdfs::create_hard_link(f.base / "a", f.base / "q/twin");
    f.open();
    mark();
  }
  size_t below(size_t n) { return random() % n; }
  std::string path() {
    static const char* const kPaths[] = {"a",   "big", "d",   "d/c",    "d/e/x",
                                         "d/e", "q",   "new", "q/twin", "d/n",
                                         "m",   "m/n", "t"};
    return kPaths[below(std::size(kPaths))];
  }
  void mark() {
    auto made = f.tree->mark(MarkKind::kNamed, 0, "");
    REQUIRE(made);
    marks[made->position] = shown(f);
  }
  void step() {
    const std::string from = path(), to = path();
    switch (below(16)) {
      case 0:
        f.create(from, "new " + to);
        break;
      case 1:
        f.mkdir(from);
        break;
      case 2:
        f.unlink(from);
        break;
      case 3:
        f.rmdir(from);
        break;
      case 4:
      case 5:
        f.rename(from, to);
        break;
      case 6:
        f.rename(from, to, RENAME_EXCHANGE);
        break;
      case 7:
        f.link(from, to);
        break;
      case 8:
      case 9:
        if (f.at(from) != 0) f.write(from, "w" + to, below(40));
        break;
      case 10:
        if (f.at(from) != 0) f.truncate(from, below(200));
        break;
      case 11:
        if (NodeId id = f.at(from))
          (void)f.tree->setattr(
              id, {.set = kSetMode, .mode = static_cast<mode_t>(below(512))},
              f.caller);
        break;
      case 12:
        if (NodeId id = f.at(from))
          (void)f.tree->setxattr(id, "user.k", to, 0, f.caller);
        break;
      case 13:
        write_to_removed();
        break;
      case 14:
        f.forget_all();
        break;
      default:
        mark();
    }
  }
  // A program has it open still.
  void write_to_removed() {
    if (f.looked_up.empty()) return;
    NodeId id = f.looked_up[below(f.looked_up.size())];
    (void)f.tree->write(id, 0, std::as_bytes(std::span("late", 4)), {});
  }
  void rollback() {
    auto it = marks.begin();
    std::advance(it, static_cast<long>(below(marks.size())));
    auto done = f.tree->rollback(it->first);
    if (!done) FAIL(done.error().text());
    CHECK(shown(f) == it->second);
    marks[done->position] = it->second;
  }
  // What is in memory, written down whole, is what the journal says.
  void check_disk() {
    f.forget_all();  // nodes without a name are on disk only when needed
    mark();
    auto told = replay(f.draft.fd());
    REQUIRE(told);
    CHECK(told->notes.empty());
    CHECK(told->state.live_bytes() == f.tree->stats().held_bytes);
    std::string want = dump(told->state);
    REQUIRE(f.tree->checkpoint());
    auto whole = replay(f.draft.fd());
    REQUIRE(whole);
    CHECK(dump(whole->state) == want);
  }

  TreeFixture f;
  std::mt19937 random;
  std::map<Position, std::string> marks;
};

size_t generations(TreeFixture& f) {
  return list_generations(f.draft.fd())->size();
}

}  // namespace

TEST_CASE("going back by what is kept is what a replay gives") {
  for (unsigned seed = 1; seed <= 60; ++seed) {
    INFO("seed " << seed);
    Life life(seed);
    for (int round = 0; round < 12; ++round) {
      for (size_t i = life.below(30); i > 0; --i) life.step();
      life.rollback();
      if (life.below(4) == 0) life.check_disk();
      // Nothing is kept over this: marks of before are replayed.
      if (life.below(6) == 0) {
        std::string before = shown(life.f);
        life.f.reopen();
        CHECK(life.f.tree->recovery_notes().empty());
        CHECK(shown(life.f) == before);
      }
    }
    life.check_disk();
    for (const auto& [position, text] : life.marks) {
      INFO("mark " << position);
      REQUIRE(life.f.tree->rollback(position));
      CHECK(shown(life.f) == text);
    }
    life.check_disk();
  }
}

TEST_CASE("a fork of any mark of a random history has its own marks too") {
  for (unsigned seed = 100; seed <= 115; ++seed) {
    INFO("seed " << seed);
    Life life(seed);
    for (int i = 0; i < 120; ++i) {
      life.step();
      if (life.below(25) == 0) life.rollback();
    }
    auto it = life.marks.begin();
    std::advance(it, static_cast<long>(life.below(life.marks.size())));
    TreeFixture g;
    REQUIRE(life.f.tree->fork_into(g.draft.fd(), it->first));
    // The other goes on in the file that both share.
    for (int i = 0; i < 40; ++i) life.step();
    std::string other = shown(life.f);
    auto opened = Tree::open({.draft_dir = g.draft.fd(),
                              .base = life.f.base.fd(),
                              .take_whole = 100,
                              .background = false});
    REQUIRE(opened);
    g.tree = std::move(*opened);
    CHECK(g.tree->recovery_notes().empty());
    CHECK(shown(g) == it->second);
    CHECK(g.create("only in the fork", "x") == 0);
    for (const auto& [position, text] : life.marks) {
      if (position > it->first) break;
      INFO("mark " << position);
      REQUIRE(g.tree->rollback(position));
      CHECK(shown(g) == text);
    }
    CHECK_FALSE(g.tree->rollback(life.marks.rbegin()->first + 1000));
    REQUIRE(g.tree->checkpoint());
    CHECK(shown(life.f) == other);
    life.check_disk();
  }
}

TEST_CASE("a rollback writes what differs and not what the draft holds") {
  TreeFixture f;
  f.open();
  for (int i = 0; i < 2000; ++i) f.create("file" + std::to_string(i), "text");
  Position at = marked(f);
  f.create("one more", "x");
  uint64_t before = f.tree->stats().journal_bytes;
  REQUIRE(f.tree->rollback(at));
  CHECK(f.tree->stats().journal_bytes < 2000);
  CHECK(before > 200'000);
  TempDir fork;
  Position now = marked(f);
  REQUIRE(f.tree->fork_into(fork.fd(), now));
  uint64_t own = 0;
  for (const auto& e : stdfs::directory_iterator(fork / "journal"))
    if (!e.is_symlink() && e.hard_link_count() == 1) own += e.file_size();
  CHECK(own > 0);
  CHECK(own < 2000);
}

TEST_CASE("a journal that was rolled back many times is written whole again") {
  TreeFixture f;
  f.open();
  f.create("file", "0");
  Position first = marked(f);
  for (int i = 0; i < 200; ++i) {
    f.write("file", std::to_string(i));
    Position at = marked(f);
    REQUIRE(f.tree->rollback(i % 2 == 0 ? first : at));
  }
  f.reopen();
  CHECK(f.tree->recovery_notes().empty());
  uint32_t most = 0;
  auto generations = Generations::list(f.draft.fd())->all();
  REQUIRE(generations);
  for (const Generation& each : *generations)
    if (each.head.from) most = std::max(most, each.head.from->depth);
  CHECK(most < 64);
  REQUIRE(f.tree->rollback(first));
  CHECK(f.read("file") == "0");
}

TEST_CASE("what is kept of the past is bounded") {
  Past past(20'000);
  Held dir;
  dir.serial = 2;
  dir.links.emplace_back();
  for (Position mark = 1; mark <= 50; ++mark) {
    past.begin(mark);
    Held node;
    node.serial = 100 + mark;
    node.links.emplace_back();
    past.keep(node);
    CHECK(past.weight() <= 20'000);
  }
  CHECK(past.spans().size() < 50);
  CHECK(past.spans().back().mark == 50);
  // What is let go is freed by who has time, or when it is too much.
  uint64_t waiting = 0;
  for (const Past::Span& span : past.take_let_go()) waiting += span.weight;
  CHECK(waiting > 0);
  CHECK(waiting + past.weight() <= 25'000);
  CHECK(past.take_let_go().empty());
  // More than the bound at once: nothing is kept, and nothing breaks.
  past.begin(51);
  past.keep(dir);
  for (int i = 0; i < 2000; ++i) past.keep_name(dir, std::to_string(i));
  CHECK(past.spans().empty());
  CHECK(past.weight() == 0);
  past.keep_name(dir, "more");
  past.begin(52);
  CHECK(past.spans().size() == 1);
}

TEST_CASE("gc keeps the generations that others go on from") {
  TreeFixture f;
  f.open();
  f.create("file", "one");
  Position one = marked(f);
  f.write("file", "two");
  REQUIRE(f.tree->rollback(one));
  f.create("second", "s");
  Position named = marked(f);
  f.unlink("file");
  REQUIRE(f.tree->gc({.max_age = 0}));
  CHECK(generations(f) > 1);
  f.reopen();
  REQUIRE(f.tree->rollback(named));
  CHECK(f.list("") == "file second");
  CHECK(f.read("file") == "one");
}
