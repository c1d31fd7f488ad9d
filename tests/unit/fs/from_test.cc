// SPDX-License-Identifier: Apache-2.0
// Generations that go on from an older one, on a disk that lost some of them
// and in drafts that share them.
#include <fstream>
#include <random>
#include <sstream>

#include "catch_shim.h"
#include "fs/gc.h"
#include "fs/layout.h"
#include "fs/replay.h"
#include "state_dump.h"
#include "timeline_fixture.h"

using namespace stoplog;
using namespace stoplog::fs;
using namespace stoplog::test;
namespace stdfs = std::filesystem;

namespace {

std::string slurp(const stdfs::path& path) {
  std::ostringstream all;
  all << std::ifstream(path, std::ios::binary).rdbuf();
  return all.str();
}

void spill(const stdfs::path& path, std::string_view bytes) {
  std::ofstream(path, std::ios::binary | std::ios::trunc)
      .write(bytes.data(), std::streamsize(bytes.size()));
}

// Three generations, the last of which go on from the first.
struct RolledBack {
  RolledBack() {
    f.base.write("low", "lower");
    f.open();
    f.create("file", "one");
    one = marked(f);
    f.write("file", "two");
    f.write("low", "LOWER");
    two = marked(f);
    REQUIRE(f.tree->rollback(one));
    f.create("second", "s");
    REQUIRE(f.tree->rollback(two));
    f.create("third", "t");
    f.rename("file", "moved");
    last = marked(f);
    REQUIRE(f.tree->fsync());
  }
  stdfs::path journal(uint32_t number) {
    return f.draft / "journal" / layout::generation_name(number);
  }
  TreeFixture f;
  Position one = 0, two = 0, last = 0;
};

struct Copy {
  explicit Copy(RolledBack& r) {
    dir.mkdir("journal");
    for (uint32_t n = 1; n <= 3; ++n)
      stdfs::copy_file(r.journal(n),
                       dir / "journal" / layout::generation_name(n));
  }
  TempDir dir;
};

}  // namespace

TEST_CASE("every prefix of a journal that goes on from another is a state") {
  RolledBack r;
  Copy copy(r);
  std::string bytes = slurp(r.journal(3));
  Fd fd = *open_generation(r.f.draft.fd(), 3, O_RDONLY);
  JournalHead head = *read_head(fd.get());
  REQUIRE(head.from);
  CHECK(head.from->position == r.two);
  std::vector<std::pair<uint64_t, Position>> ends{{head.size, head.first}};
  REQUIRE(scan_frames(
      fd.get(), head.size, head.first, head.open.draft,
      [&](const Frame& frame) -> Result<bool> {
        ends.push_back({ends.back().first + kFrameHead + frame.payload.size(),
                        frame.sequence});
        return true;
      }));
  REQUIRE(ends.size() > 6);
  const stdfs::path file = copy.dir / "journal" / layout::generation_name(3);
  // The first records were on disk before the file had its name.
  for (size_t i = 2; i + 1 < ends.size(); ++i) {
    auto [end, position] = ends[i];
    INFO("record " << position);
    std::string want = dump(replay(r.f.draft.fd(), position)->state);
    for (uint64_t cut :
         {end, end + 1, (end + ends[i + 1].first) / 2, ends[i + 1].first - 1}) {
      spill(file, bytes.substr(0, cut));
      auto result = replay(copy.dir.fd());
      REQUIRE(result);
      CHECK_FALSE(result->damaged);
      CHECK((dump(result->state) == want));
      // The length reached the disk, the bytes did not.
      std::string zeroes = bytes.substr(0, cut) + std::string(5000, '\0');
      if (zeroes.starts_with(bytes.substr(0, ends[i + 1].first))) continue;
      spill(file, zeroes);
      result = replay(copy.dir.fd());
      REQUIRE(result);
      CHECK_FALSE(result->damaged);
      CHECK((dump(result->state) == want));
    }
  }
}

TEST_CASE("no byte lost or changed in what a journal goes on from is unseen") {
  RolledBack r;
  std::string want = dump(replay(r.f.draft.fd())->state);
  Copy copy(r);
  std::mt19937 random(5);
  // The second generation is not read for the present.
  for (uint32_t number : {1u, 3u}) {
    const stdfs::path file =
        copy.dir / "journal" / layout::generation_name(number);
    std::string bytes = slurp(file);
    for (int i = 0; i < 300; ++i) {
      std::string bad = bytes;
      size_t at = random() % bad.size();
      if (number == 1 && i % 3 == 0)
        bad.resize(at);
      else
        bad[at] = char(bad[at] ^ (1 << random() % 8));
      spill(file, bad);
      auto result = replay(copy.dir.fd());
      if (!result) continue;
      bool seen = result->damaged || !result->notes.empty();
      // Behind what the third goes on from.
      if (!seen) CHECK((dump(result->state) == want));
      if (number == 3) CHECK(seen);
    }
    spill(file, bytes);
  }
}

TEST_CASE("a generation without its first record shows what was before it") {
  RolledBack r;
  for (bool torn : {true, false}) {
    r.f.tree.reset();
    std::string bytes = slurp(r.journal(3));
    std::string bad = bytes;
    Fd fd = *open_generation(r.f.draft.fd(), 3, O_RDONLY);
    // The record of what it goes on from is the third.
    const JournalHead head = *read_head(fd.get());
    uint64_t at = head.size;
    REQUIRE(scan_frames(
        fd.get(), head.size, head.first, head.open.draft,
        [&](const Frame& frame) -> Result<bool> {
          at += kFrameHead + frame.payload.size();
          return true;
        },
        head.first + 1));
    if (torn)
      bad.resize(at + 10);
    else
      bad[at + 40] ^= 1;
    spill(r.journal(3), bad);
    r.f.open();
    CHECK_FALSE(r.f.tree->recovery_notes().empty());
    CHECK(r.f.tree->read_only());
    CHECK(r.f.list("") == "file low second");
    CHECK(r.f.create("new", "x") == EROFS);
    if (torn) {
      spill(r.journal(3), bytes);
      continue;
    }
    // And leads out of it.
    REQUIRE(r.f.tree->rollback(r.two));
    CHECK(r.f.read("file") == "two");
    CHECK(r.f.create("new", "x") == 0);
    r.f.reopen();
    CHECK(r.f.tree->recovery_notes().empty());
    CHECK(r.f.list("") == "file low new");
  }
}

TEST_CASE("a chain of generations without end is no journal") {
  TempDir draft;
  Position at = 0;
  for (uint32_t n = 1; n <= 70; ++n) {
    OpenRecord open{.draft = 7, .generation = n, .cookie_seed = 1};
    auto journal = Journal::create(draft.fd(), open, at);
    REQUIRE(journal);
    std::vector<Record> records;
    if (n > 1) records.push_back(FromRecord{.position = at});
    records.push_back(DeviceRecord{1});
    REQUIRE((*journal)->append(records, 0));
    REQUIRE((*journal)->publish());
    at = (*journal)->position();
    auto read = replay(draft.fd());
    if (n <= kMostDepth) REQUIRE(read);
    if (n > kMostDepth) CHECK(read.error().code() == Code::kCorrupt);
  }
}

TEST_CASE("a journal that goes on from itself or in its middle is damaged") {
  for (bool first : {true, false}) {
    TempDir draft;
    OpenRecord open{.draft = 7, .generation = 1, .cookie_seed = 1};
    auto journal = Journal::create(draft.fd(), open, 0);
    REQUIRE(journal);
    std::vector<Record> records{DeviceRecord{1}};
    records.insert(first ? records.begin() : records.end(),
                   FromRecord{.position = 1});
    REQUIRE((*journal)->append(records, 0));
    REQUIRE((*journal)->publish());
    auto read = replay(draft.fd());
    if (first)
      CHECK(read.error().code() == Code::kCorrupt);
    else
      CHECK(read.value().damaged);
  }
}

TEST_CASE("a fork outlives what its parent forgets and the parent itself") {
  TreeFixture g;
  Position one = 0, two = 0;
  {
    RolledBack r;
    one = r.one, two = r.two;
    REQUIRE(r.f.tree->fork_into(g.draft.fd(), r.last));
    r.f.write("moved", "changed in the parent");
    marked(r.f);
    REQUIRE(r.f.tree->gc({.max_age = 0}));
    REQUIRE(r.f.tree->checkpoint());
    stdfs::copy(r.f.base.path(), g.base.path(),
                stdfs::copy_options::recursive |
                    stdfs::copy_options::overwrite_existing);
  }
  g.open();
  CHECK(g.tree->recovery_notes().empty());
  CHECK(g.list("") == "low moved third");
  CHECK(g.read("moved") == "two");
  REQUIRE(g.tree->gc({}));
  g.reopen();
  CHECK(g.tree->recovery_notes().empty());
  REQUIRE(g.tree->rollback(one));
  CHECK(g.read("file") == "one");
  REQUIRE(g.tree->rollback(two));
  CHECK(g.read("file") == "two");
  // A fork of a fork, of a mark that both had.
  TreeFixture h;
  REQUIRE(g.tree->fork_into(h.draft.fd(), one));
  CHECK_FALSE(g.tree->fork_into(h.draft.fd(), one));  // something is there
  g.tree.reset();
  h.open();
  CHECK(h.tree->recovery_notes().empty());
  CHECK(h.list("") == "file");
}

TEST_CASE("a fork stands where it was made and not where its parent is") {
  RolledBack r;
  TreeFixture g;
  REQUIRE(r.f.tree->fork_into(g.draft.fd(), r.one));
  auto read = replay(g.draft.fd());
  REQUIRE(read);
  CHECK(read->state.position() == read->end.sequence);
  CHECK(read->state.marks().size() == 1);
  auto timeline = read_timeline(g.draft.fd());
  REQUIRE(timeline);
  CHECK(timeline->marks.size() == 1);
  CHECK(timeline->end == read->end.sequence);
}

namespace {

struct Told : Observer {
  void invalidate(std::span<const Invalidation> what) override {
    all.insert(all.end(), what.begin(), what.end());
  }
  void drift(const DriftNote&) override {}
  void denied(const Denial&) override {}
  const Invalidation* of(NodeId id) const {
    for (const Invalidation& one : all)
      if (one.kind == Invalidation::Kind::kNode && one.node == id) return &one;
    return nullptr;
  }
  std::vector<Invalidation> all;
};

}  // namespace

TEST_CASE("content of another moment is told before a rollback is done") {
  TreeFixture f;
  f.open();
  Told told;
  f.tree->set_observer(&told);
  Position empty = marked(f);
  f.create("file", "one");
  Position one = marked(f);
  f.write("file", "two");
  Position two = marked(f);
  NodeId id = f.at("file");
  REQUIRE(f.tree->rollback(empty));
  // As it was when it went: whoever asks by its name learns all.
  told.all.clear();
  REQUIRE(f.tree->rollback(two));
  REQUIRE(told.of(id) != nullptr);
  CHECK(told.of(id)->later);
  REQUIRE(f.tree->rollback(empty));
  told.all.clear();
  REQUIRE(f.tree->rollback(one));
  REQUIRE(told.of(id) != nullptr);
  CHECK_FALSE(told.of(id)->later);
  CHECK(f.read("file") == "one");
  f.tree->set_observer(nullptr);
}
