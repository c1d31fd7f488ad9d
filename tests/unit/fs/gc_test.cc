// SPDX-License-Identifier: Apache-2.0
#include "fs/gc.h"

#include "catch_shim.h"
#include "fs/draft_view.h"
#include "fs/history.h"
#include "random_history.h"

using namespace stoplog;
using namespace stoplog::fs;
using stoplog::test::RandomHistory;
using stoplog::test::TempDir;
using stoplog::test::TreeFixture;
namespace stdfs = std::filesystem;

namespace {

uint64_t disk_bytes(const TempDir& draft) {
  uint64_t sum = 0;
  for (const auto& e : stdfs::directory_iterator(draft / "segments")) {
    struct stat st;
    if (::stat(e.path().c_str(), &st) == 0) sum += uint64_t(st.st_blocks) * 512;
  }
  return sum;
}

// Every mark that the tree still has shows what it showed.
void check_marks(RandomHistory& h) {
  for (const Mark& mark : h.f.tree->marks()) {
    auto known = h.marks.find(mark.position);
    if (known == h.marks.end()) continue;
    INFO("mark " << mark.position);
    CHECK(h.dump(mark.position) == known->second);
  }
}

Mark mark_of(MarkKind kind, Position position, uint32_t command, int64_t time) {
  return {.id = 1,
          .kind = kind,
          .position = position,
          .command = command,
          .time = {.tv_sec = time, .tv_nsec = 0}};
}

uint64_t segment_bytes(const TempDir& draft) {
  uint64_t blocks = 0;
  for (const auto& e : stdfs::directory_iterator(draft / "segments"))
    blocks += sys::statat(AT_FDCWD, e.path().string())->blocks;
  return blocks * 512;
}

}  // namespace

TEST_CASE("which marks a policy lets go") {
  using enum MarkKind;
  const timespec now{.tv_sec = 100'000, .tv_nsec = 0};
  std::vector<Mark> marks = {
      mark_of(kCommit, 1, 0, 100),        mark_of(kCommandBegin, 2, 1, 1000),
      mark_of(kCommandEnd, 3, 1, 1001),   mark_of(kNamed, 4, 0, 1002),
      mark_of(kCommit, 5, 0, 1003),       mark_of(kBarrier, 6, 0, 1004),
      mark_of(kCommandBegin, 7, 2, 9000), mark_of(kCommandEnd, 8, 2, 9001),
      mark_of(kBarrier, 9, 0, 99'000),    mark_of(kRollback, 10, 2, 99'001)};
  using Set = std::set<Position>;
  // Old barriers always go; a commit before every mark says nothing.
  CHECK(marks_to_keep(marks, {}, now) == Set{2, 3, 4, 5, 7, 8, 9, 10});
  CHECK(marks_to_keep(marks, {.max_age = 95'000}, now) ==
        Set{4, 5, 7, 8, 9, 10});
  // Names, the last command, the newest and what a reader may stand on stay.
  CHECK(marks_to_keep(marks, {.max_age = 1}, now) == Set{4, 5, 7, 8, 9, 10});
  CHECK(marks_to_keep(marks, {.max_age = 1, .stood_on = {3, 6}}, now) ==
        Set{3, 4, 5, 6, 7, 8, 9, 10});
  CHECK(marks_to_keep(marks, {}, now, 1) == Set{3, 4, 5, 7, 8, 9, 10});
  CHECK(marks_to_keep(marks, {}, now, 100) == Set{4, 5, 7, 8, 9, 10});
}

TEST_CASE("gc takes nothing that a mark or a fork of a random history needs") {
  uint64_t freed = 0, dropped = 0;
  for (unsigned seed = 1; seed <= 10; ++seed) {
    INFO("seed " << seed);
    RandomHistory h(seed);
    TempDir fork;
    Position fork_at = 0;
    for (int round = 0; round < 4; ++round) {
      h.run(60);
      if (round == 1) {
        fork_at = h.marks.rbegin()->first;
        REQUIRE(h.f.tree->fork_into(fork.fd(), fork_at));
      }
      std::string before = h.dump(kEnd);
      GcPolicy policy;
      if (h.below(2) == 0) policy.max_bytes = 50'000 + h.below(300'000);
      uint64_t disk = disk_bytes(h.f.draft);
      auto dry = h.f.tree->gc({.max_bytes = policy.max_bytes, .dry_run = true});
      if (!dry) FAIL(dry.error().text());
      CHECK(disk_bytes(h.f.draft) == disk);
      auto report = h.f.tree->gc(policy);
      if (!report) FAIL(report.error().text());
      CHECK(report->marks == dry->marks);
      if (round < 1) {
        // ext4 needs a page to tell the parts of a file with five or more.
        const uint64_t pages =
            4096 * uint64_t(std::distance(
                       stdfs::directory_iterator(h.f.draft / "segments"), {}));
        const uint64_t sum = disk_bytes(h.f.draft) + report->bytes;
        CHECK(sum >= disk);
        CHECK(sum <= disk + pages);
      }
      freed += report->bytes;
      dropped += report->marks;
      CHECK(h.dump(kEnd) == before);
      check_marks(h);
      // Marks that are gone are gone for the random steps, too.
      std::map<Position, std::string> left;
      for (const Mark& mark : h.f.tree->marks())
        if (h.marks.contains(mark.position))
          left[mark.position] = h.marks[mark.position];
      h.marks = left;
      if (round % 2 == 0) h.f.reopen();
      check_marks(h);
      // Once more frees nothing: all of it was found.
      auto again = h.f.tree->gc({});
      REQUIRE(again);
      CHECK(again->segments == 0);
    }
    // The fork still has every byte, and collects for itself alone.
    std::string forked = h.dump(fork.fd(), kEnd);
    CHECK(forked.find('<') == std::string::npos);
    {
      auto tree = Tree::open(
          {.draft_dir = fork.fd(), .base = h.f.base.fd(), .background = false});
      REQUIRE(tree);
      REQUIRE((*tree)->gc({}));
    }
    CHECK(h.dump(fork.fd(), kEnd) == forked);
    check_marks(h);
  }
  CHECK(freed > 0);
  CHECK(dropped > 0);
}

TEST_CASE("an open file without a name survives gc and a new generation") {
  TreeFixture f;
  f.open();
  f.create("file", std::string(100'000, 'o'));
  NodeId id = f.at("file");
  f.unlink("file");
  REQUIRE(f.tree->mark(MarkKind::kNamed, 0, "m"));
  REQUIRE(f.tree->gc({}));
  CHECK(f.read(id) == std::string(100'000, 'o'));
  // And can be written to: the record must find its node in a replay.
  std::string text = "more";
  REQUIRE(f.tree->write(id, 5, std::as_bytes(std::span(text)), {}));
  f.reopen();
  CHECK(f.tree->recovery_notes().empty());
  CHECK_FALSE(f.tree->read_only());
}

TEST_CASE("writing to what a rollback took away leaves a sound journal") {
  TreeFixture f;
  f.open();
  auto start = f.tree->mark(MarkKind::kNamed, 0, "start");
  f.create("file", "text");
  NodeId id = f.at("file");
  REQUIRE(f.tree->rollback(start->position));
  std::string text = "more";
  (void)f.tree->write(id, 5, std::as_bytes(std::span(text)), {});
  (void)f.tree->setattr(id, {.set = kSetMode, .mode = 0600}, f.caller);
  f.reopen();
  CHECK(f.tree->recovery_notes().empty());
  CHECK_FALSE(f.tree->read_only());
  CHECK(f.list("") == "");
}

TEST_CASE(
    "a program that rewrites the same pages in each command stays small") {
  TreeFixture f;
  f.open();
  f.create("file");
  constexpr uint64_t kLimit = 40u << 20;
  f.tree->set_history({.max_bytes = kLimit});
  for (uint32_t i = 1; i <= 100; ++i) {
    REQUIRE(f.tree->mark(MarkKind::kCommandBegin, i, ""));
    CHECK(f.write("file", std::string(1 << 20, char('a' + i % 26))) == 0);
    CHECK(f.write("file", std::string(1 << 20, char('b' + i % 26)), 1 << 20) ==
          0);
    REQUIRE(f.tree->mark(MarkKind::kCommandEnd, i, ""));
    REQUIRE(f.tree->settle());
    // A quarter more is written before it looks again.
    CHECK(disk_bytes(f.draft) <= kLimit + kLimit / 2);
  }
  CHECK(f.tree->marks().size() < 60);
  CHECK(f.tree->changed_by_command() == 0);
  Position last = 0;
  for (const Mark& mark : f.tree->marks())
    if (mark.kind == MarkKind::kCommandBegin) last = mark.position;
  REQUIRE(f.tree->rollback(last));
  CHECK(f.read("file")[0] == char('a' + 99 % 26));
}

TEST_CASE("small files that come and go in one command stay small") {
  TreeFixture f;
  f.open();
  REQUIRE(f.tree->mark(MarkKind::kCommandBegin, 1, ""));
  // Smaller than a page, and not a multiple of what they are aligned to.
  const std::string text(3001, 'x');
  NodeId known = 0;
  for (int i = 0; i < 20'000; ++i) {
    auto made = f.tree->mknod(kRootId, "tmp", S_IFREG | 0644, 0, f.caller);
    REQUIRE(made);
    REQUIRE(f.tree->write(made->id, 0, std::as_bytes(std::span(text)), {}));
    REQUIRE(f.tree->rename(kRootId, "tmp", kRootId, "file", 0, f.caller));
    if (known != 0) f.tree->forget(known, 1);
    known = made->id;
    if (i % 1000 == 0) REQUIRE(f.tree->settle());
    if (i % 5000 == 0) CHECK(disk_bytes(f.draft) < 45u << 20);
  }
  CHECK(disk_bytes(f.draft) < 45u << 20);
  CHECK(f.read("file") == text);
}

// Not a multiple of a page, or of what smaller ones are aligned to: what lies
// between them is nobody's.
TEST_CASE("files of odd sizes that are gone are given back without a gap") {
  for (size_t size : {20'001u, 3'001u}) {
    INFO(size);
    TreeFixture f;
    f.open();
    REQUIRE(f.create("first", "x") == 0);
    const std::string text(size, 'x');
    for (int i = 0; i < 500; ++i) {
      auto made = f.tree->mknod(kRootId, "tmp", S_IFREG | 0644, 0, f.caller);
      REQUIRE(made);
      REQUIRE(f.tree->write(made->id, 0, std::as_bytes(std::span(text)), {}));
      REQUIRE(f.tree->unlink(kRootId, "tmp", f.caller));
      f.tree->forget(made->id, 1);
    }
    REQUIRE(f.create("last", text) == 0);
    REQUIRE(f.tree->settle());
    CHECK(segment_bytes(f.draft) < 100'000);
    CHECK(f.read("last") == text);
    CHECK(f.read("first") == "x");
  }
}

// A review that is open for hours, a commit that waits at its prompt.
TEST_CASE("gc takes nothing that a living reader stands on") {
  const std::string text(200'000, 'x');
  auto read = [](const Content& content) {
    std::string bytes(200'000, '\0');
    auto n = content.read(0, std::as_writable_bytes(std::span(bytes)));
    return n ? bytes : "<" + n.error().text() + ">";
  };
  for (bool has_daemon : {true, false}) {
    INFO((has_daemon ? "at a mark" : "at the end"));
    TreeFixture f;
    f.open();
    f.create("other", text);
    f.create("file", text);
    Position at = kEnd;
    f.reopen();  // nobody has them open
    if (has_daemon)
      at = f.tree->mark(MarkKind::kBarrier, 0, "")->position;
    else
      f.tree.reset();
    auto view = stoplog::fs::open_view(
        {.draft_dir = f.draft.fd(), .base = f.base.fd(), .at = at});
    REQUIRE(view);
    if (!has_daemon) {
      f.open();
      REQUIRE(f.tree->mark(MarkKind::kBarrier, 0, ""));
    }
    f.unlink("file");
    f.unlink("other");
    REQUIRE(f.tree->mark(MarkKind::kBarrier, 0, ""));
    // Twice: the second time its generation is an older one.
    for (int round = 0; round < 2; ++round) {
      REQUIRE(f.tree->settle());
      REQUIRE(f.tree->gc({.barrier_age = 0}));
      REQUIRE(f.tree->checkpoint());
      REQUIRE(f.tree->mark(MarkKind::kBarrier, 0, ""));
    }
    auto state = (*view)->draft_state(*RelPath::parse("file"));
    REQUIRE(state);
    REQUIRE(*state);
    auto content = (*state)->content;
    state = {};
    CHECK(read(*content) == text);
    // What was taken out of a view counts as it does.
    const Position stood = (*view)->position();
    view->reset();
    REQUIRE(f.tree->gc({.barrier_age = 0}));
    CHECK(read(*content) == text);
    CHECK(disk_bytes(f.draft) >= 2 * text.size());
    content.reset();
    REQUIRE(f.tree->gc({.barrier_age = 0}));
    CHECK(disk_bytes(f.draft) < text.size());
    CHECK_FALSE(replay(f.draft.fd(), stood));
  }
}

TEST_CASE("a command changed what it wrote moved and removed") {
  TreeFixture f;
  f.base.write("edited", "x");
  f.base.write("replaced", "x");
  f.base.write("removed", "x");
  f.base.write("rewritten", "x");
  f.base.write("touched", "x");
  f.base.write("moved", "x");
  f.open();
  uint32_t command = 0;
  auto changed = [&](auto&& act) {
    REQUIRE(f.tree->mark(MarkKind::kCommandBegin, ++command, ""));
    act();
    uint64_t count = f.tree->changed_by_command();
    REQUIRE(f.tree->mark(MarkKind::kCommandEnd, command, ""));
    return count;
  };
  auto save = [&](const char* name) {
    CHECK(f.create("tmp", "new") == 0);
    CHECK(f.rename("tmp", name) == 0);
  };
  auto touch = [&] {
    REQUIRE(f.tree->setattr(f.at("touched"),
                            {.set = kSetMtime, .mtime = {1, 0}}, f.caller));
  };
  CHECK(changed([] {}) == 0);
  CHECK(changed([&] { CHECK(f.write("edited", "y") == 0); }) == 1);
  CHECK(changed([&] { save("replaced"); }) == 1);
  CHECK(changed([&] { save("replaced"); }) == 1);
  CHECK(changed([&] { save("made"); }) == 1);
  CHECK(changed([&] { CHECK(f.unlink("made") == 0); }) == 1);
  CHECK(changed([&] { CHECK(f.unlink("removed") == 0); }) == 1);
  CHECK(changed([&] {
          CHECK(f.write("rewritten", "y") == 0);
          CHECK(f.unlink("rewritten") == 0);
        }) == 1);
  CHECK(changed([&] { CHECK(f.rename("moved", "there") == 0); }) == 1);
  CHECK(changed(touch) == 0);
  CHECK(changed([&] {
          touch();
          CHECK(f.write("touched", "y") == 0);
        }) == 1);
  CHECK(changed([&] {
          save("coming");
          CHECK(f.unlink("coming") == 0);
        }) == 0);
}

TEST_CASE("ten thousand commands replay one stretch of the journal alone") {
  auto replayed = [](uint32_t commands) {
    TreeFixture f;
    f.open();
    f.create("file");
    f.create("log");
    NodeId known[10] = {};
    for (uint32_t i = 1; i <= commands; ++i) {
      REQUIRE(f.tree->mark(MarkKind::kCommandBegin, i, ""));
      // What a small build does, mostly: files that come and go.
      for (int n = 0; n < 10; ++n) {
        auto made = f.tree->mknod(kRootId, "tmp", S_IFREG | 0644, 0, f.caller);
        REQUIRE(made);
        std::string text = "t";
        REQUIRE(f.tree->write(made->id, 0, std::as_bytes(std::span(text)), {}));
        REQUIRE(f.tree->rename(kRootId, "tmp", kRootId,
                               "out" + std::to_string(n), 0, f.caller));
        // As the kernel does: what was replaced is forgotten afterwards.
        NodeId old = std::exchange(known[n], made->id);
        if (old != 0) f.tree->forget(old, 1);
      }
      CHECK(f.tree->changed_by_command() == 10);
      REQUIRE(f.tree->mark(MarkKind::kCommandEnd, i, ""));
      if (i % 50 == 0) REQUIRE(f.tree->settle());
    }
    f.tree.reset();
    auto result = replay(f.draft.fd());
    REQUIRE(result);
    CHECK_FALSE(result->damaged);
    CHECK(result->state.nodes().size() < 20);
    CHECK(result->state.marks().size() == 2 * commands);
    return result->records;
  };
  // Records of one stretch between checkpoints, not of the whole history
  // (430,000 and 86,000): half as much again as what marks need, which is a
  // seal for each file and two marks a command.
  CHECK(replayed(10'000) < 170'000);
  CHECK(replayed(2'000) < 45'000);
}

TEST_CASE("a checkpoint that is not urgent waits until no command runs") {
  TreeFixture f;
  f.open();
  f.create("file");
  auto generations = [&] { return list_generations(f.draft.fd())->size(); };
  auto commands = [&](uint32_t first, uint32_t last) {
    for (uint32_t i = first; i <= last; ++i) {
      REQUIRE(f.tree->mark(MarkKind::kCommandBegin, i, ""));
      for (int n = 0; n < 10; ++n) {
        REQUIRE(f.rename("file", "other") == 0);
        REQUIRE(f.rename("other", "file") == 0);
      }
      REQUIRE(f.tree->mark(MarkKind::kCommandEnd, i, ""));
    }
  };
  REQUIRE(f.tree->mark(MarkKind::kCommandBegin, 1, ""));
  commands(2, 1000);
  REQUIRE(f.tree->settle());
  CHECK(generations() == 1);
  REQUIRE(f.tree->mark(MarkKind::kCommandEnd, 1, ""));
  REQUIRE(f.tree->settle());
  CHECK(generations() == 2);
  // Nothing was lost by it.
  CHECK(f.tree->marks().size() == 2000);
  f.tree.reset();
  auto result = replay(f.draft.fd());
  REQUIRE(result);
  CHECK(result->state.marks().size() == 2000);
}

TEST_CASE("marks older than the policy keeps them go by themselves") {
  TreeFixture f;
  f.base.write("a", "a");
  {
    auto journal = Journal::create(f.draft.fd(), {.draft = 7}, 0);
    REQUIRE(journal);
    for (uint32_t command = 1; command <= 3; ++command) {
      Mark mark = mark_of(MarkKind::kCommandEnd, 0, command, 1000);
      mark.id = command;
      REQUIRE((*journal)->append(std::vector<Record>{MarkRecord{mark}}, 0));
    }
    REQUIRE((*journal)->publish());
  }
  f.open();
  REQUIRE(f.tree->settle());
  CHECK(f.tree->marks().size() == 3);  // no policy
  f.tree->set_history({.max_age = 3600});
  REQUIRE(f.tree->mark(MarkKind::kCommandEnd, 4, ""));
  REQUIRE(f.tree->settle());
  REQUIRE(f.tree->marks().size() == 1);
  CHECK(f.tree->marks()[0].command == 4);
}
