// SPDX-License-Identifier: Apache-2.0
// A commit has an identity, by which its draft knows that it was told of it:
// whoever cannot know asks again, and nothing moves twice.
#include "catch_shim.h"
#include "fs/gc.h"
#include "fs/replay.h"
#include "timeline_fixture.h"

using namespace stoplog;
using namespace stoplog::fs;
using namespace stoplog::test;
namespace stdfs = std::filesystem;

namespace {

constexpr CommitId kId = 0x1234567890abcdef;
const stdfs::path kJournal = "journal/00000001";

BaseChange moved(TreeFixture& f, const char* from, const char* to) {
  BaseChange change{.path = *RelPath::parse(to), .from = *RelPath::parse(from)};
  change.before = stat_of(f, to);
  change.now = change.before;
  return change;
}

// Two directories change places, in the draft and by a commit, which also
// brings `more` files: told twice, they would change places again.
struct Swapped {
  explicit Swapped(int more = 0) {
    f.base.mkdir("a");
    f.base.mkdir("b");
    f.base.write("a/f1", "one");
    f.base.write("b/f2", "two");
    f.open();
    f.rename("a", "tmp");
    f.rename("b", "a");
    f.rename("tmp", "b");
    for (int i = 0; i < more; ++i) f.create(name(i), "new");
    reviewed = marked(f);
    stdfs::rename(f.base / "a", f.base / "tmp");
    stdfs::rename(f.base / "b", f.base / "a");
    stdfs::rename(f.base / "tmp", f.base / "b");
    changes = {moved(f, "b", "a"), moved(f, "a", "b")};
    for (int i = 0; i < more; ++i)
      changes.push_back(commit_file(f, name(i), "new"));
  }
  static std::string name(int i) { return "n" + std::to_string(i); }
  Status tell(CommitId id = kId) {
    TRY(f.tree->commit_base(reviewed, changes, {.id = id, .since = {}}));
    return {};
  }
  size_t maps() { return base_maps_since(f.draft.fd(), reviewed)->size(); }
  // What was committed is clean, what is held since can be read.
  void check() {
    CHECK(changed_paths(f).empty());
    CHECK(f.read("a/f2") == "two");
    CHECK(f.read("b/f1") == "one");
    CHECK(f.rename("a/f2", "g") == 0);
    CHECK(f.read("g") == "two");
    CHECK(f.rename("g", "a/f2") == 0);
    CHECK(changed_paths(f).empty());
  }

  TreeFixture f;
  Position reviewed = 0;
  std::vector<BaseChange> changes;
};

}  // namespace

TEST_CASE("a commit that is told to its draft twice changes nothing twice") {
  Swapped s;
  REQUIRE(s.tell());
  s.check();
  REQUIRE(s.tell());
  s.check();
  SECTION("to one that was opened again") { s.f.reopen(); }
  SECTION("after a checkpoint") {
    REQUIRE(s.f.tree->checkpoint());
    s.f.reopen();
  }
  SECTION("after the mark of the commit was let go") {
    for (int i = 0; i < 3; ++i)
      REQUIRE(s.f.tree->mark(MarkKind::kBarrier, 0, ""));
    REQUIRE(s.f.tree->gc({.max_age = 0, .barrier_age = -1}));
    s.f.reopen();
  }
  size_t maps = s.maps();
  REQUIRE(s.tell());
  CHECK(s.maps() == maps);
  s.check();
  // Another is another.
  BaseChange none = s.changes[0];
  none.from.reset();
  REQUIRE(s.f.tree->commit_base(marked(s.f), {{none}}, {.id = 1, .since = {}}));
  CHECK(s.maps() == maps + 1);
}

TEST_CASE("going back past a commit does not forget that it was told") {
  Swapped s;
  REQUIRE(s.tell());
  REQUIRE(s.f.tree->rollback(s.reviewed));
  std::string held = changed_paths(s.f);
  size_t maps = s.maps();
  for (bool again : {false, true}) {
    if (again) s.f.reopen();
    REQUIRE(s.tell());
    CHECK(changed_paths(s.f) == held);
    CHECK(s.maps() == maps);
    CHECK(s.f.read("a/f2") == "two");
  }
}

TEST_CASE("whatever a crash leaves of what was told it can be told again") {
  // More than one record holds.
  const int more = GENERATE(0, 600);
  Swapped s(more);
  REQUIRE(s.f.tree->fsync());
  const auto size = [&] {
    Fd fd = *open_generation(s.f.draft.fd(), 1, O_RDONLY);
    auto end = journal_scan(fd.get(), *read_head(fd.get()), kEnd,
                            [](const Logged&) -> Status { return {}; });
    return end->end;
  };
  const uint64_t before = size();
  REQUIRE(s.tell());
  const uint64_t after = size();
  s.f.looked_up.clear();
  s.f.tree.reset();
  const std::string journal = s.f.draft.read(kJournal.string());
  REQUIRE(after > before);
  // All of a small one; of a large one around where records end.
  const uint64_t step = more == 0 ? 7 : (after - before) / 40;
  for (uint64_t end = before; end <= after; end += step) {
    INFO("cut at " << end - before << " of " << after - before);
    s.f.draft.write(kJournal.string(), journal.substr(0, end));
    s.f.open();
    CHECK_FALSE(s.f.tree->read_only());
    REQUIRE(s.tell());
    CHECK(s.maps() == 1);
    s.check();
    REQUIRE(s.tell());
    CHECK(s.maps() == 1);
    s.f.looked_up.clear();
    s.f.tree.reset();
  }
}

TEST_CASE("an id whose map never came is not the next one's") {
  Swapped s;
  s.f.tree.reset();
  {
    Fd fd = *open_generation(s.f.draft.fd(), 1, O_RDONLY);
    JournalHead head = *read_head(fd.get());
    auto end = journal_scan(fd.get(), head, kEnd,
                            [](const Logged&) -> Status { return {}; });
    auto journal = Journal::resume(s.f.draft.fd(), head, *end);
    std::vector<Record> half{ToldRecord{.follows = true, .commits = {kId}}};
    REQUIRE((*journal)->append(half, 0));
  }
  s.f.open();
  ToldBy other{.id = 5, .since = {}};
  REQUIRE(s.f.tree->commit_base(s.reviewed, {{s.changes[0]}}, other));
  CHECK(s.maps() == 1);
  REQUIRE(s.tell());
  CHECK(s.maps() == 2);
}

TEST_CASE("a journal from before there were ids is told once by its marks") {
  Swapped s;
  REQUIRE(s.tell(0));
  s.f.reopen();
  REQUIRE(s.tell());
  CHECK(s.maps() == 1);
  s.check();
  // Its undo speaks of the same review, and comes later.
  stdfs::rename(s.f.base / "a", s.f.base / "tmp");
  stdfs::rename(s.f.base / "b", s.f.base / "a");
  stdfs::rename(s.f.base / "tmp", s.f.base / "b");
  std::vector<BaseChange> back{moved(s.f, "b", "a"), moved(s.f, "a", "b")};
  ToldBy undo{.id = 2, .since = s.f.tree->marks().back().time};
  for (int times = 0; times < 2; ++times) {
    REQUIRE(s.f.tree->commit_base(s.reviewed, back, undo));
    CHECK(s.maps() == 2);
    CHECK(changed_paths(s.f).empty());
  }
}
