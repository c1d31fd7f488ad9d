// SPDX-License-Identifier: Apache-2.0
// Content that is lost where no program can be told of it is named by its path.
#include <fstream>

#include "catch_shim.h"
#include "timeline_fixture.h"

using namespace stoplog;
using namespace stoplog::fs;
using namespace stoplog::test;
namespace stdfs = std::filesystem;

namespace {

struct Noted : Observer {
  std::vector<std::string> notes;
  void invalidate(std::span<const Invalidation>) override {}
  void drift(const DriftNote& note) override {
    notes.push_back(note.path.str() + ": " + note.what);
  }
  std::vector<std::string> losses;
  void lost(const std::string& path) override { losses.push_back(path); }
  void denied(const Denial&) override {}
};

}  // namespace

TEST_CASE("stores through a mapping that found no room are named once") {
  TreeFixture f;
  Noted noted;
  f.options.observer = &noted;
  f.options.quota = {.bytes = 1000, .inodes = 100, .reserve = 500};
  f.open();
  REQUIRE(f.mkdir("d") == 0);
  REQUIRE(f.create("d/mapped", std::string(1000, 'x')) == 0);
  NodeId id = f.at("d/mapped");
  std::vector<std::byte> page(400);
  auto store = [&](uint64_t at, bool writeback) {
    return f.err(f.tree->write(id, at, page, {.writeback = writeback}));
  };
  CHECK(store(2000, false) == ENOSPC);  // who called write(2) was told
  CHECK(store(2000, true) == 0);
  CHECK(noted.notes.empty());
  CHECK(store(3000, true) == ENOSPC);
  CHECK(store(4000, true) == ENOSPC);
  REQUIRE(noted.notes.size() == 1);
  CHECK(noted.notes[0].starts_with("d/mapped: "));
  // Whoever stored it is to end, each time.
  CHECK(noted.losses == std::vector<std::string>{"d/mapped", "d/mapped"});
  // Where some can be made it is not lost.
  REQUIRE(f.create("d/other") == 0);
  CHECK(f.truncate("d/mapped", 100) == 0);
  CHECK(store(0, true) == 0);
  CHECK(noted.notes.size() == 1);
  CHECK(noted.losses.size() == 2);
}

TEST_CASE("stores to a mapped file without a name that are lost are told") {
  TreeFixture f;
  Noted noted;
  f.options.observer = &noted;
  f.options.quota = {.bytes = 1000, .inodes = 100, .reserve = 500};
  f.open();
  REQUIRE(f.create("mapped", "x") == 0);
  NodeId id = f.at("mapped");
  REQUIRE(f.unlink("mapped") == 0);
  std::vector<std::byte> page(4096);
  CHECK(f.err(f.tree->write(id, 0, page, {.writeback = true})) == ENOSPC);
  CHECK(noted.losses == std::vector<std::string>{""});
}

TEST_CASE("a flipped bit that a program meets is named by its path") {
  TreeFixture f;
  Noted noted;
  f.options.observer = &noted;
  f.open();
  REQUIRE(f.mkdir("d") == 0);
  REQUIRE(f.create("d/file", std::string(5000, 'f')) == 0);
  marked(f);
  REQUIRE(f.tree->settle());
  f.tree.reset();
  for (const auto& e : stdfs::directory_iterator(f.draft / "segments")) {
    std::fstream file(e.path(), std::ios::in | std::ios::out);
    file.seekp(1234);
    file.put('X');
  }
  f.looked_up.clear();
  f.open();
  for (int i = 0; i < 3; ++i) CHECK(f.read("d/file").find("d/file") == 1);
  REQUIRE(noted.notes.size() == 1);
  CHECK(noted.notes[0].starts_with("d/file: "));
}
