// SPDX-License-Identifier: Apache-2.0
// Files that are written here and there: many ranges, marks between them.
#include <fcntl.h>
#include <linux/falloc.h>

#include <map>
#include <random>

#include "catch_shim.h"
#include "fs/draft_view.h"
#include "fs/generations.h"
#include "tree_fixture.h"

using namespace stoplog;
using namespace stoplog::fs;
using namespace stoplog::test;

namespace {

std::string content_of(TreeFixture& f) {
  std::string text(f.attr("file").size, '\0');
  auto n =
      f.tree->read(f.at("file"), 0, std::as_writable_bytes(std::span(text)));
  return n && *n == text.size() ? text : "<not read>";
}

// What a view at a mark, made from the journal alone, shows.
std::string content_at(TreeFixture& f, Position at) {
  auto view = open_view({.draft_dir = f.draft.fd(),
                         .base = f.base.fd(),
                         .at = at,
                         .objects = {}});
  REQUIRE(view);
  auto state = (*view)->draft_state(RelPath::parse("file").value());
  REQUIRE(state);
  REQUIRE(*state);
  std::string text((*state)->content->size(), '\0');
  auto n = (*state)->content->read(0, std::as_writable_bytes(std::span(text)));
  return n && *n == text.size() ? text : "<not read>";
}

struct Scattered {
  explicit Scattered(unsigned seed) : random(seed) {
    f.options.take_whole = 1000;
    for (size_t i = 0; i < kSize; ++i) bytes += char('a' + i % 26);
    f.base.write("file", bytes);
    f.open();
    mark();
  }
  uint64_t below(uint64_t n) { return random() % n; }
  void mark() {
    auto made = f.tree->mark(MarkKind::kNamed, 0, "");
    REQUIRE(made);
    marks[made->position] = bytes;
  }
  void write() {
    const uint64_t at = below(kSize);
    const std::string text(1 + below(30), char('A' + below(26)));
    REQUIRE(f.write("file", text, at) == 0);
    if (bytes.size() < at + text.size()) bytes.resize(at + text.size());
    bytes.replace(at, text.size(), text);
  }
  void clear_range() {
    const uint64_t at = below(kSize), length = 1 + below(2000);
    const int how = below(2) ? FALLOC_FL_PUNCH_HOLE : FALLOC_FL_ZERO_RANGE;
    REQUIRE(f.tree->fallocate(f.at("file"), how | FALLOC_FL_KEEP_SIZE, at,
                              length, {}));
    for (uint64_t i = at; i < std::min(at + length, bytes.size()); ++i)
      bytes[i] = '\0';
  }
  void go_back() {
    auto to = std::next(marks.begin(), long(below(marks.size())));
    REQUIRE(f.tree->rollback(to->first));
    bytes = to->second;
  }
  void step() {
    const uint64_t what = below(1000);
    if (what < 960) return write();
    if (what < 975) return clear_range();
    if (what < 990) return mark();
    if (what < 993) return go_back();
    if (what < 994) {
      bytes.resize(below(kSize));
      REQUIRE(f.truncate("file", bytes.size()) == 0);
    } else if (what < 996) {
      REQUIRE(f.tree->settle());
    } else if (what < 998) {
      REQUIRE(f.tree->checkpoint());
    } else if (what < 999) {
      f.reopen();
    }
    REQUIRE(content_of(f) == bytes);
  }

  static constexpr uint64_t kSize = 200'000;
  TreeFixture f;
  std::mt19937 random;
  std::string bytes;
  std::map<Position, std::string> marks;
};

}  // namespace

TEST_CASE("a file written here and there is what an array of bytes is") {
  for (unsigned seed = 1; seed <= 4; ++seed) {
    INFO("seed " << seed);
    Scattered life(seed);
    for (int i = 0; i < 5000; ++i) life.step();
    REQUIRE(content_of(life.f) == life.bytes);
    for (const auto& [at, bytes] : life.marks)
      REQUIRE(content_at(life.f, at) == bytes);
  }
}

TEST_CASE(
    "a file of many ranges does not ask for one checkpoint after another") {
  TreeFixture f;
  f.open();
  f.create("file");
  for (uint64_t i = 0; i < 40'000; ++i)
    REQUIRE(f.tree->write(f.at("file"), i * 7919 % 40'000 * 8,
                          std::as_bytes(std::span("data", 4)), {}));
  auto newest = [&] { return list_generations(f.draft.fd())->back(); };
  REQUIRE(f.tree->settle());
  const uint32_t first = newest();
  for (uint64_t i = 0; i < 4; ++i) {
    REQUIRE(f.write("file", "d", i) == 0);
    REQUIRE(f.tree->settle());
  }
  CHECK(newest() <= first + 1);
}

TEST_CASE("a hundred marks of a file of many ranges are all kept in memory") {
  State state;
  state.remember();
  Position at = 0;
  auto apply = [&](Record record) {
    REQUIRE(state.apply({++at, 0, std::move(record)}));
    return at;
  };
  apply(CreateRecord{.serial = 2,
                     .parent = kRootSerial,
                     .name = "file",
                     .ino = 1ull << 62 | 2,
                     .mode = S_IFREG | 0644});
  auto write = [&](uint64_t i) {
    apply(ExtentRecord{.serial = 2,
                       .offset = i * 10,
                       .length = 5,
                       .where = Where::kSegment,
                       .segment = 1,
                       .at = i * 5,
                       .keep_size = false,
                       .time = {}});
  };
  constexpr uint64_t kMany = 60'000;
  for (uint64_t i = 0; i < kMany; ++i) write(i);
  const Position first = apply(MarkRecord{Mark{.id = 1}});
  for (uint32_t i = 2; i < 102; ++i) {
    write(i * 37 % kMany);
    apply(MarkRecord{Mark{.id = i}});
  }
  CHECK(state.can_go_back(first));
  // What was really written anew counts: not all of that is kept.
  for (uint32_t i = 200; i < 300; ++i) {
    for (uint64_t n = 0; n < kMany; ++n) write(n);
    apply(MarkRecord{Mark{.id = i}});
  }
  CHECK_FALSE(state.can_go_back(first));
}
