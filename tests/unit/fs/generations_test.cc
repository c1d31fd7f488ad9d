// SPDX-License-Identifier: Apache-2.0
// Where a generation of the journal begins and ends, and what is known of one
// that is damaged or gone.
#include "fs/generations.h"

#include "catch_shim.h"
#include "damage_story.h"
#include "fs/gc.h"
#include "fs/journal.h"

using namespace stoplog;
using namespace stoplog::fs;
using namespace stoplog::test;
namespace stdfs = std::filesystem;

namespace {

stdfs::path journal_of(const TempDir& draft, uint32_t number) {
  return draft / "journal" / layout::generation_name(number);
}

void flip(const stdfs::path& path, uint64_t at) {
  std::string bytes = slurp(path);
  bytes[at] = char(bytes[at] ^ 4);
  spill(path, bytes);
}

// Where the first record of a type lies.
uint64_t place_of(const TempDir& draft, uint32_t number, uint16_t type) {
  Fd fd = *open_generation(draft.fd(), number, O_RDONLY);
  JournalHead head = *read_head(fd.get());
  uint64_t at = head.size;
  auto end = scan_frames(fd.get(), head.size, head.first, head.open.draft,
                         [&](const Frame& frame) -> Result<bool> {
                           if (frame.type == type) return false;
                           at += kFrameHead + frame.payload.size();
                           return true;
                         });
  REQUIRE(end->stopped);
  return at;
}

void write_generation(const TempDir& draft, uint32_t number, Position after,
                      std::vector<Record> records) {
  auto journal = Journal::create(
      draft.fd(), {.draft = 7, .generation = number, .cookie_seed = 1}, after);
  REQUIRE(journal);
  REQUIRE((*journal)->append(records, 0));
  REQUIRE((*journal)->publish());
}

}  // namespace

TEST_CASE("a fork with a damaged head does not show its parent's later work") {
  Story story;
  const TempDir& fork = story.fork_dir;
  // The fork's first own generation: its fourth.
  flip(journal_of(fork, 4), 20);
  auto marks = replay(fork.fd())->state.marks();
  size_t looked = 0;
  for (const Mark& mark : marks) {
    if (mark.generation < 3 || mark.generation > 4) continue;
    INFO("mark " << mark.position);
    CHECK(story.show(fork.fd(), mark.position) ==
          story.expected[fork.fd()][mark.position]);
    ++looked;
  }
  CHECK(looked >= 3);
}

TEST_CASE("a position that may be in a generation without a head is refused") {
  // As they were written before each told of those before it.
  TempDir draft;
  auto device = [](size_t n) {
    return std::vector<Record>(n, DeviceRecord{1});
  };
  write_generation(draft, 1, 0, device(20));
  std::vector<Record> own = device(4);
  own.insert(own.begin(), FromRecord{.position = 3});
  write_generation(draft, 2, 5, own);
  own = device(4);
  own.insert(own.begin(), FromRecord{.position = 8});
  write_generation(draft, 3, 11, own);
  stdfs::remove(draft / "journal" / layout::kNewest);
  REQUIRE(replay(draft.fd(), 8));
  CHECK_FALSE(replay(draft.fd(), 8)->damaged);
  flip(journal_of(draft, 2), 20);
  for (Position at : {4, 8}) {
    auto read = replay(draft.fd(), at);
    REQUIRE_FALSE(read);
    CHECK(read.error().code() == Code::kCorrupt);
  }
  auto end = replay(draft.fd());
  REQUIRE(end);
  CHECK(end->damaged);
  REQUIRE_FALSE(end->notes.empty());
  CHECK(end->notes[0].find("generation 3 goes on from record 8") !=
        std::string::npos);
}

TEST_CASE("a fork does not take its parent's commits for its own") {
  TreeFixture f;
  f.base.write("low", "lower");
  f.open();
  f.create("file", "one");
  Position one = marked(f);
  TempDir fork;
  REQUIRE(f.tree->fork_into(fork.fd(), one));
  // The parent goes on, in the file that both have.
  f.write("low", "changed");
  Position reviewed = marked(f);
  BaseChange change = commit_file(f, "low", "changed");
  change.preimage = sha256("lower");
  REQUIRE(f.tree->commit_base(reviewed, {{change}}));
  f.tree.reset();
  auto opened = Tree::open(
      {.draft_dir = fork.fd(), .base = f.base.fd(), .background = false});
  REQUIRE(opened);
  Tree& tree = **opened;
  for (int i = 0; i < 40; ++i) {
    auto made = tree.mknod(kRootId, "f" + std::to_string(i), S_IFREG | 0644, 0,
                           f.caller);
    REQUIRE(made);
  }
  // Leaves the parent's generation and the newest.
  REQUIRE(tree.checkpoint());
  CHECK(*list_generations(fork.fd()) == std::vector<uint32_t>{1, 3});
  CHECK(base_maps_since(fork.fd(), one)->empty());
  auto view =
      open_view({.draft_dir = fork.fd(), .base = f.base.fd(), .at = one});
  REQUIRE(view);
  CHECK((*view)->changes()->size() == 1);
  CHECK(tree.rollback(one));
}

TEST_CASE("no rollback goes past a commit whose base map is damaged") {
  for (bool whole : {false, true}) {
    TreeFixture f;
    f.base.write("low", "lower");
    f.open();
    f.create("file", "one");
    Position before = marked(f);
    f.write("low", "committed");
    Position reviewed = marked(f);
    BaseChange change = commit_file(f, "low", "committed");
    change.preimage = sha256("lower");
    REQUIRE(f.tree->commit_base(reviewed, {{change}}));
    Position after = marked(f);
    f.create("later", "l");
    if (whole) REQUIRE(f.tree->checkpoint());
    f.tree.reset();
    flip(journal_of(f.draft, 1),
         place_of(f.draft, 1, record_type(BaseMapRecord{})) + 40);
    f.open();
    CHECK(f.tree->read_only() == !whole);
    for (Position at : {before, reviewed}) {
      auto done = f.tree->rollback(at);
      REQUIRE_FALSE(done);
      CHECK(done.error().text().find("what the commit of record") !=
            std::string::npos);
      CHECK_FALSE(open_view(
          {.draft_dir = f.draft.fd(), .base = f.base.fd(), .at = at}));
      TempDir fork;
      if (whole) CHECK_FALSE(f.tree->fork_into(fork.fd(), at));
    }
    CHECK_FALSE(f.tree->rollback(after));  // was made of it
    if (whole) CHECK(f.list("") == "file later low");
  }
}

TEST_CASE("half a base map that a crash left is no part of the next") {
  TreeFixture f;
  for (const char* name : {"a", "b"}) f.base.write(name, "lower");
  f.open();
  for (const char* name : {"a", "b"}) f.write(name, "held");
  Position before = marked(f);
  std::vector<BaseChange> changes;
  for (const char* name : {"a", "b"}) {
    changes.push_back(commit_file(f, name, "held"));
    changes.back().preimage = sha256("lower");
  }
  f.tree.reset();
  {
    Fd fd = *open_generation(f.draft.fd(), 1, O_RDONLY);
    JournalHead head = *read_head(fd.get());
    auto end = journal_scan(fd.get(), head, kEnd,
                            [](const Logged&) -> Status { return {}; });
    auto journal = Journal::resume(f.draft.fd(), head, *end);
    std::vector<Record> half{BaseMapRecord{
        .reviewed = before, .more = true, .changes = {changes[0]}}};
    REQUIRE((*journal)->append(half, 0));
  }
  f.open();
  CHECK_FALSE(f.tree->read_only());
  CHECK(changed_paths(f) == "a b");
  REQUIRE(f.tree->commit_base(before, changes));
  auto maps = base_maps_since(f.draft.fd(), before);
  REQUIRE(maps);
  REQUIRE(maps->size() == 1);
  CHECK((*maps)[0].changes.size() == 2);
  CHECK(changed_paths(f).empty());
  f.reopen();
  CHECK(changed_paths(f).empty());
}

TEST_CASE("a draft without its newest generation says so and leads out") {
  TreeFixture f;
  f.open();
  f.create("file", "one");
  Position one = marked(f);
  f.create("two", "2");
  REQUIRE(f.tree->checkpoint());
  f.create("three", "3");
  f.tree.reset();
  REQUIRE(stdfs::remove(journal_of(f.draft, 2)));
  f.open();
  CHECK(f.tree->read_only());
  REQUIRE(f.tree->recovery_notes().size() == 1);
  CHECK(f.tree->recovery_notes()[0].find("generation 2 of the journal is "
                                         "missing") == 0);
  CHECK(read_timeline(f.draft.fd())->damaged);
  CHECK(f.list("") == "file two");
  REQUIRE(f.tree->rollback(one));
  CHECK(f.create("four", "4") == 0);
  f.reopen();
  CHECK_FALSE(f.tree->read_only());
  CHECK(f.list("") == "file four");
  CHECK(*list_generations(f.draft.fd()) == std::vector<uint32_t>{1, 3});
  // And without any file there is no new, empty draft.
  f.tree.reset();
  for (uint32_t number : {1, 3}) stdfs::remove(journal_of(f.draft, number));
  auto opened = Tree::open({.draft_dir = f.draft.fd(), .base = f.base.fd()});
  REQUIRE_FALSE(opened);
  CHECK(opened.error().code() == Code::kCorrupt);
}

TEST_CASE("positions that were lost with a generation are never used again") {
  for (bool is_missing : {true, false}) {
    INFO((is_missing ? "missing" : "all zeros"));
    TreeFixture f;
    f.open();
    f.create("file", "one");
    Position one = marked(f);
    REQUIRE(f.tree->checkpoint());
    f.create("two", "2");
    Position lost = marked(f);
    f.tree.reset();
    const stdfs::path newest = journal_of(f.draft, 2);
    if (is_missing)
      REQUIRE(stdfs::remove(newest));
    else
      spill(newest, std::string(stdfs::file_size(newest), '\0'));
    f.open();
    REQUIRE(f.tree->read_only());
    // As many records as were lost, and more.
    REQUIRE(f.tree->rollback(one));
    for (int i = 0; i < 20; ++i) f.create("new" + std::to_string(i), "new");
    marked(f);
    REQUIRE(f.tree->position() > lost);
    f.reopen();
    CHECK_FALSE(f.tree->read_only());
    for (const Mark& mark : f.tree->marks()) CHECK(mark.position != lost);
    auto view =
        open_view({.draft_dir = f.draft.fd(), .base = f.base.fd(), .at = lost});
    CHECK_FALSE(view);
    CHECK_FALSE(f.tree->rollback(lost));
    CHECK(state_text(f, one, "file") == "one");
    if (!is_missing) continue;
    // Nor after a second loss.
    Position second = f.tree->position();
    f.tree.reset();
    REQUIRE(stdfs::remove(journal_of(f.draft, 3)));
    f.open();
    REQUIRE(f.tree->rollback(one));
    CHECK(f.tree->position() > second + lost);
  }
}

TEST_CASE("gc touches nothing while a generation that marks need is missing") {
  TreeFixture f;
  f.open();
  f.create("file", std::string(50'000, 'x'));
  Position one = marked(f);
  REQUIRE(f.tree->checkpoint());
  f.unlink("file");
  marked(f);
  REQUIRE(f.tree->settle());
  std::string kept = slurp(journal_of(f.draft, 1));
  REQUIRE(stdfs::remove(journal_of(f.draft, 1)));
  CHECK(f.tree->gc({}).error().code() == Code::kCorrupt);
  f.reopen();
  CHECK(f.tree->rollback(one).error().text().find("generation 1") !=
        std::string::npos);
  CHECK_FALSE(f.tree->gc({}));
  // It was in lost+found.
  spill(journal_of(f.draft, 1), kept);
  REQUIRE(f.tree->gc({}));
  REQUIRE(f.tree->rollback(one));
  CHECK(f.read("file") == std::string(50'000, 'x'));
}

TEST_CASE("the link to the newest generation is written anew when it is old") {
  TreeFixture f;
  f.open();
  f.create("file", "one");
  marked(f);
  REQUIRE(f.tree->checkpoint());
  const stdfs::path link = f.draft / "journal" / layout::kNewest;
  const stdfs::path target = stdfs::read_symlink(link);
  for (const char* other : {"", "nonsense", "00000001-0-1"}) {
    f.tree.reset();
    stdfs::remove(link);
    if (*other != '\0') stdfs::create_symlink(other, link);
    f.open();
    CHECK_FALSE(f.tree->read_only());
    CHECK(f.tree->recovery_notes().empty());
    CHECK(stdfs::read_symlink(link) == target);
  }
}

TEST_CASE("a new draft that lost power before it was kept opens and says so") {
  for (size_t zeros : {size_t{0}, size_t{9000}}) {
    INFO(zeros << " bytes of zeros");
    TreeFixture f;
    f.base.write("low", "lower");
    f.open();
    f.create("file", "one");
    f.tree.reset();
    spill(journal_of(f.draft, 1), std::string(zeros, '\0'));
    // Who only reads finds no journal yet.
    auto read = replay(f.draft.fd());
    REQUIRE_FALSE(read);
    CHECK(read.error().err() == ENOENT);
    f.open();
    CHECK_FALSE(f.tree->read_only());
    REQUIRE(f.tree->recovery_notes().size() == 1);
    CHECK(f.tree->recovery_notes()[0].find("had not reached the disk") !=
          std::string::npos);
    CHECK(f.at("file") == 0);
    f.create("file", "two");
    REQUIRE(f.tree->fsync());
    f.reopen();
    CHECK(f.read("file") == "two");
    CHECK(f.tree->recovery_notes().empty());
  }
}

TEST_CASE("an empty journal that was kept before is damage") {
  TreeFixture f;
  f.open();
  f.create("file", "one");
  REQUIRE(f.tree->fsync());
  f.tree.reset();
  spill(journal_of(f.draft, 1), "");
  f.open();
  CHECK(f.tree->read_only());
}

TEST_CASE("a journal that a kill left before it was kept is whole") {
  TreeFixture f;
  f.open();
  f.create("file", "one");
  f.reopen();
  CHECK(f.read("file") == "one");
  CHECK_FALSE(stdfs::is_symlink(f.draft / "journal" / layout::kNewest));
  REQUIRE(f.tree->fsync());
  auto newest = read_newest(
      sys::openat(f.draft.fd(), "journal", O_RDONLY | O_DIRECTORY)->get());
  REQUIRE(newest);
  CHECK(newest->part.generation == 1);
  CHECK(newest->part.first == 1);
}
