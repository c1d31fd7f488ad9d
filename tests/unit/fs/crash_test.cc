// SPDX-License-Identifier: Apache-2.0
// What a crash can leave of the journal and the segments, all of it tried.
#include <algorithm>
#include <random>

#include "base/sys_file.h"
#include "catch_shim.h"
#include "fs/replay.h"
#include "state_dump.h"
#include "tree_fixture.h"

using namespace stoplog;
using namespace stoplog::fs;
using stoplog::test::dump;
using stoplog::test::TempDir;
using stoplog::test::TreeFixture;
namespace stdfs = std::filesystem;

namespace {

// One of each kind of change.
void work(TreeFixture& f) {
  f.base.mkdir("d/e");
  f.base.write("d/e/low", "low");
  f.base.write("x", "x");
  stdfs::create_hard_link(f.base / "x", f.base / "y");
  f.open();
  f.create("new", "text");
  f.write("d/e/low", "LOW", 1);
  f.tree->mark(MarkKind::kCommandBegin, 1, "one");
  f.rename("d/e", "moved");
  f.unlink("x");
  f.link("new", "d/linked");
  f.tree->setattr(f.at("moved"), {.set = kSetMode, .mode = 0700}, f.caller);
  f.tree->setxattr(f.at("new"), "user.k", "v", 0, f.caller);
  f.truncate("new", 2);
  f.mkdir("made");
  f.rename("new", "made/new");
  f.tree->mark(MarkKind::kCommandEnd, 1, "");
  f.write("made/new", "after the mark");
  f.tree->settle();
  f.rename("made/new", "d/linked2");
  f.rmdir("made");
  f.tree.reset();
}

stdfs::path journal_of(const TempDir& draft) {
  return draft / "journal" / "00000001";
}

std::string slurp(const stdfs::path& path) {
  std::ostringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  return text.str();
}

void spill(const stdfs::path& path, std::string_view bytes) {
  std::ofstream(path, std::ios::binary | std::ios::trunc)
      .write(bytes.data(), std::streamsize(bytes.size()));
}

}  // namespace

TEST_CASE("every prefix of the journal is the state after its last record") {
  TreeFixture f;
  work(f);
  std::string bytes = slurp(journal_of(f.draft));
  Fd fd = *open_generation(f.draft.fd(), 1, O_RDONLY);
  JournalHead head = *read_head(fd.get());
  std::vector<std::pair<uint64_t, Position>> ends{{head.size, head.first}};
  REQUIRE(scan_frames(
      fd.get(), head.size, head.first, head.open.draft,
      [&](const Frame& frame) -> Result<bool> {
        ends.push_back({ends.back().first + kFrameHead + frame.payload.size(),
                        frame.sequence});
        return true;
      }));
  REQUIRE(ends.size() > 20);
  REQUIRE(ends.back().first == bytes.size());
  TempDir other;
  other.mkdir("journal");
  std::mt19937 random(7);
  auto replayed = [&](const std::string& content, const std::string& want) {
    spill(journal_of(other), content);
    auto result = replay(other.fd());
    REQUIRE(result);
    CHECK_FALSE(result->damaged);
    CHECK((dump(result->state) == want));
  };
  for (size_t i = 0; i + 1 < ends.size(); ++i) {
    auto [end, position] = ends[i];
    uint64_t next = ends[i + 1].first;
    // Seals that were written later are not in what is cut off before them.
    Generations all = *Generations::list(f.draft.fd());
    std::string want = dump(replay(all, position, Seals::kOwn)->state);
    std::string whole = bytes.substr(0, end);
    INFO("record " << position);
    replayed(whole, want);
    for (uint64_t cut : {end + 1, (end + next) / 2, next - 1}) {
      std::string torn = bytes.substr(0, cut);
      replayed(torn, want);
      // The length reached the disk, the bytes did not, or others did.
      std::string zeroes = torn + std::string(next - cut, '\0');
      if (zeroes != bytes.substr(0, next)) replayed(zeroes, want);
      std::string noise(next - cut + random() % 100, '\0');
      for (char& c : noise) c = char(random());
      if (!(torn + noise).starts_with(bytes.substr(0, next)))
        replayed(torn + noise, want);
    }
    replayed(whole + std::string(4096, '\0'), want);
  }
}

TEST_CASE("a flipped bit anywhere in the journal never goes unseen") {
  TreeFixture f;
  work(f);
  std::string bytes = slurp(journal_of(f.draft));
  std::string want = dump(replay(f.draft.fd())->state);
  TempDir other;
  other.mkdir("journal");
  std::mt19937 random(3);
  for (int i = 0; i < 300; ++i) {
    std::string bad = bytes;
    size_t at = random() % bad.size();
    bad[at] = char(bad[at] ^ (1 << random() % 8));
    spill(journal_of(other), bad);
    auto result = replay(other.fd());
    if (!result) continue;  // the first record
    bool seen = result->damaged || !result->notes.empty();
    if (!seen) CHECK((dump(result->state) == want));
    CHECK(seen);
  }
}

TEST_CASE("what was synced survives whatever later writes the disk lost") {
  TreeFixture f;
  f.base.write("low", "lower content");
  f.open();
  f.create("synced", std::string(9000, 's'));
  f.write("low", "LOWER");
  REQUIRE(f.tree->fsync());
  std::string old_journal = slurp(journal_of(f.draft));
  std::map<std::string, std::string> old_segments;
  for (const auto& e : stdfs::directory_iterator(f.draft / "segments"))
    old_segments[e.path().filename()] = slurp(e.path());
  for (int i = 0; i < 10; ++i) {
    f.create("late" + std::to_string(i), std::string(5000, 'l'));
    f.write("late0", std::string(300, char('a' + i)), uint64_t(i) * 100);
  }
  f.tree.reset();
  std::string journal = slurp(journal_of(f.draft));
  // The journal up to any point, over segments as they were at the fsync.
  for (const auto& [name, content] : old_segments)
    spill(f.draft / "segments" / name, content);
  for (size_t cut = old_journal.size(); cut <= journal.size(); cut += 41) {
    spill(journal_of(f.draft), journal.substr(0, cut));
    f.open();
    CHECK(f.read("synced") == std::string(9000, 's'));
    CHECK(f.read("low") == "LOWER content");
    CHECK_FALSE(f.tree->read_only());
    f.tree.reset();
  }
}

TEST_CASE("a crash while a generation is written leaves the one before") {
  TreeFixture f;
  f.open();
  f.create("file", "text");
  f.tree.reset();
  spill(f.draft / "journal" / "00000002.new", "half a checkpoi");
  f.open();
  CHECK(f.read("file") == "text");
  CHECK_FALSE(stdfs::exists(f.draft / "journal" / "00000002.new"));
  CHECK(f.tree->checkpoint());
  f.reopen();
  CHECK(f.read("file") == "text");
}

// Heads that an agent put into an attribute: of lengths that do not fit, and of
// lengths and numbers that do.
TEST_CASE("a torn record full of forged heads does not lock a draft") {
  TreeFixture f;
  f.open();
  f.create("file", "text");
  std::string before = dump(replay(f.draft.fd())->state);
  f.tree.reset();
  std::string bytes = slurp(journal_of(f.draft));
  for (bool fits : {false, true}) {
    std::string head("SLg1", 4);
    uint32_t length = fits ? 4096 : 0x03ffffff;
    uint64_t sequence = fits ? 9 : 0;
    head.append(reinterpret_cast<const char*>(&length), 4);
    head.append(8, 'c');
    head.append(reinterpret_cast<const char*>(&sequence), 8);
    head.append("\1\0\1\0\0\0\0\0", 8);
    std::string torn;
    while (torn.size() < 64 << 10) torn += head;
    spill(journal_of(f.draft), bytes + "SLg1" + torn);
    auto result = replay(f.draft.fd());
    REQUIRE(result);
    CHECK_FALSE(result->damaged);
    CHECK((dump(result->state) == before));
  }
}
