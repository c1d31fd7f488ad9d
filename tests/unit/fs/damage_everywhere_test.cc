// SPDX-License-Identifier: Apache-2.0
// One fault anywhere in a draft's files: a flipped bit, a cut, a file that is
// missing, empty, another's. Whatever is shown afterwards is either what was
// there or comes with a word, and what was before the damage can be gone back
// to. STOPLOG_DAMAGE_FLIPS: bits to flip in each frame (the long form; see
// is_looked_at for the short one).
#include <random>

#include "catch_shim.h"
#include "damage_story.h"

using namespace stoplog;
using namespace stoplog::fs;
using namespace stoplog::test;
namespace stdfs = std::filesystem;

namespace {

struct FramePlace {
  uint32_t generation;
  uint64_t begin, end;
  Position sequence;
  uint16_t type;
};

std::vector<FramePlace> frames_of(int draft) {
  std::vector<FramePlace> frames;
  auto generations = Generations::list(draft);
  REQUIRE(generations);
  auto all = generations->all();
  REQUIRE(all);
  for (const Generation& each : *all) {
    Fd fd = *open_generation(draft, each.number, O_RDONLY);
    frames.push_back({each.number, 0, each.head.size, each.head.first, 0});
    REQUIRE(scan_frames(
        fd.get(), each.head.size, each.head.first, each.head.open.draft,
        [&](const Frame& frame) -> Result<bool> {
          uint64_t at = frames.back().end;
          frames.push_back({each.number, at,
                            at + kFrameHead + frame.payload.size(),
                            frame.sequence, frame.type});
          return true;
        }));
  }
  return frames;
}

// A copy of a draft with one fault in it, and what may be expected of it.
class Damaged {
 public:
  Damaged(Story& story, const TempDir& draft)
      : story_(story), expected_(story.expected[draft.fd()]) {
    for (const char* part : {layout::kJournalDir, layout::kSegmentDir})
      stdfs::copy(
          draft / part, dir / part,
          stdfs::copy_options::recursive | stdfs::copy_options::copy_symlinks);
  }
  stdfs::path journal(uint32_t number) const {
    return dir / layout::kJournalDir / layout::generation_name(number);
  }
  // The end of the newest generation is what a crash may have left.
  bool tail_may_go = false;

  void check() {
    std::map<Position, bool> sound;
    bool opens = false;
    for (const auto& [at, want] : expected_) {
      auto view = story_.view(dir.fd(), at);
      if (!view) {
        CHECK_FALSE(view.error().text().empty());
        continue;
      }
      if (at == kEnd) opens = true;
      INFO("at " << at);
      std::string is = dump_dir(**view, RelPath());
      sound[at] = !(*view)->damaged() && is == want;
      if (sound[at] || (*view)->damaged()) {
        CHECK((sound[at] || !(*view)->notes().empty()));
        continue;
      }
      if (at == kEnd && tail_may_go) continue;
      check_lines(is, want);
    }
    check_tree(opens, sound);
    sound_marks = std::move(sound);
  }
  std::map<Position, bool> sound_marks;
  TempDir dir;

 private:
  // Where two views differ, one says what is wrong.
  static void check_lines(const std::string& is, const std::string& want) {
    std::istringstream a(is), b(want);
    std::string left, right;
    while (std::getline(b, right)) {
      REQUIRE(std::getline(a, left));
      // What no mark has seen yet has no check.
      if (left == right || right.starts_with("unmarked ")) continue;
      INFO("is   " << left << "\nwant " << right);
      bool names =
          left.find('<') != std::string::npos &&
          left.substr(0, left.find(' ')) == right.substr(0, right.find(' '));
      CHECK(names);
    }
    CHECK_FALSE(std::getline(a, left));
  }

  void check_tree(bool opens, std::map<Position, bool>& sound) {
    auto opened = Tree::open({.draft_dir = dir.fd(),
                              .base = story_.parent.base.fd(),
                              .background = false,
                              .objects = story_.objects()});
    CHECK(opened.has_value() == opens);
    if (!opened) return;
    Tree& tree = **opened;
    bool shows = sound[kEnd] || !tree.read_only();
    CHECK((shows || !tree.recovery_notes().empty()));
    for (const auto& [at, want] : expected_) {
      if (at == kEnd) continue;
      INFO("rollback to " << at);
      auto done = tree.rollback(at);
      if (!done) {
        INFO(done.error().text());
        // Content that fails its check is found when it is read.
        CHECK_FALSE(sound[at]);
        continue;
      }
      CHECK_FALSE(tree.read_only());
      auto view = story_.view(dir.fd(), kEnd);
      REQUIRE(view);
      CHECK_FALSE((*view)->damaged());
      std::string is = dump_dir(**view, RelPath());
      if (is != want) check_lines(is, want);
    }
  }

  Story& story_;
  const std::map<Position, std::string>& expected_;
};

void flip(const stdfs::path& path, uint64_t at, unsigned bit) {
  std::string bytes = slurp(path);
  REQUIRE(at < bytes.size());
  bytes[at] = char(bytes[at] ^ (1 << bit));
  spill(path, bytes);
}

unsigned flips() {
  const char* text = ::getenv("STOPLOG_DAMAGE_FLIPS");
  return text != nullptr ? unsigned(std::atoi(text)) : 0;
}

// Without a number: one bit of each that others stand on, and of one in five.
bool is_looked_at(const FramePlace& frame) {
  static const std::set<uint16_t> kStoodOn{
      record_type(OpenRecord{}),  record_type(OlderRecord{}),
      record_type(FromRecord{}),  record_type(TableRecord{}),
      record_type(StartRecord{}), record_type(BaseMapRecord{})};
  return flips() > 0 || kStoodOn.contains(frame.type) ||
         frame.sequence % 5 == 0;
}

// Needed for the state at a mark: the frames up to it in the generations that
// are read. Lost base maps of later commits are needed as well.
bool needs(int draft, Position mark, const FramePlace& frame) {
  auto all = Generations::list(draft);
  for (Position at = mark;;) {
    Generation each = *all->find(at);
    if (each.number == frame.generation && frame.sequence <= at) return true;
    if (!each.head.from) return false;
    at = each.head.from->position;
  }
}

void flip_everywhere(Story& story, const TempDir& draft) {
  std::vector<FramePlace> frames = frames_of(draft.fd());
  std::set<Position> maps;
  for (const FramePlace& frame : frames)
    if (frame.type == record_type(BaseMapRecord{})) maps.insert(frame.sequence);
  std::mt19937 random(11);
  for (size_t i = 0; i < frames.size(); ++i) {
    const FramePlace& frame = frames[i];
    if (!is_looked_at(frame)) continue;
    for (unsigned n = 0; n < std::max(flips(), 1u); ++n) {
      uint64_t at = n % 2 == 1
                        ? frame.begin + random() % kFrameHead
                        : frame.begin + random() % (frame.end - frame.begin);
      INFO("generation " << frame.generation << " record " << frame.sequence
                         << " type " << frame.type << " byte " << at);
      Damaged damaged(story, draft);
      damaged.tail_may_go = i + 1 == frames.size();
      flip(damaged.journal(frame.generation), at, random() % 8);
      damaged.check();
      for (const auto& [mark, text] : story.expected[draft.fd()]) {
        if (mark == kEnd || needs(draft.fd(), mark, frame)) continue;
        // It may have been a part of what the commit behind it did.
        if (maps.contains(frame.sequence) ||
            (maps.contains(frame.sequence + 1) && frame.sequence > mark))
          continue;
        INFO("mark " << mark);
        CHECK(damaged.sound_marks[mark]);
      }
    }
  }
}

}  // namespace

TEST_CASE("a flipped bit in any record of a draft is never another view") {
  Story story;
  flip_everywhere(story, story.parent.draft);
}

TEST_CASE("a flipped bit in any record of a fork is never another view") {
  Story story;
  flip_everywhere(story, story.fork_dir);
}

TEST_CASE("a generation that is cut or missing is never another view") {
  Story story;
  for (const TempDir* draft : {&story.parent.draft, &story.fork_dir}) {
    std::vector<FramePlace> frames = frames_of(draft->fd());
    const uint32_t newest = frames.back().generation;
    unsigned step = flips() > 0 ? 1 : 7;
    for (size_t i = 0; i < frames.size(); i += step) {
      const FramePlace& frame = frames[i];
      for (uint64_t at : {frame.begin, (frame.begin + frame.end) / 2}) {
        INFO("generation " << frame.generation << " cut in record "
                           << frame.sequence << " at " << at);
        Damaged damaged(story, *draft);
        damaged.tail_may_go = frame.generation == newest;
        stdfs::resize_file(damaged.journal(frame.generation), at);
        damaged.check();
      }
    }
    for (uint32_t number = 1; number <= newest; ++number) {
      INFO("without generation " << number);
      Damaged damaged(story, *draft);
      REQUIRE(stdfs::remove(damaged.journal(number)));
      damaged.check();
      if (number == newest) CHECK_FALSE(damaged.sound_marks[kEnd]);
    }
  }
}

TEST_CASE("another file in the place of a generation is never another view") {
  Story story;
  TreeFixture stranger;
  stranger.open();
  for (int i = 0; i < 200; ++i) {
    stranger.create("strange" + std::to_string(i), "s");
    marked(stranger);
  }
  stranger.tree.reset();
  const stdfs::path strange = stranger.draft / "journal" / "00000001";
  for (const TempDir* draft : {&story.parent.draft, &story.fork_dir}) {
    const TempDir& other =
        draft == &story.fork_dir ? story.parent.draft : story.fork_dir;
    const uint32_t newest = frames_of(draft->fd()).back().generation;
    for (uint32_t number = 1; number <= newest; ++number) {
      for (uint32_t with = 1; with <= newest; ++with) {
        if (with == number) continue;
        INFO("generation " << number << " is " << with);
        Damaged damaged(story, *draft);
        spill(damaged.journal(number), slurp(damaged.journal(with)));
        damaged.check();
      }
      INFO("generation " << number << " is another draft's");
      const stdfs::path theirs =
          other / "journal" / layout::generation_name(number);
      for (const stdfs::path& file : {theirs, strange}) {
        if (!stdfs::exists(file)) continue;
        Damaged damaged(story, *draft);
        spill(damaged.journal(number), slurp(file));
        damaged.check();
      }
    }
  }
}

TEST_CASE("damage in a segment is named by the path that it was part of") {
  Story story;
  for (const TempDir* draft : {&story.parent.draft, &story.fork_dir}) {
    std::vector<std::string> names;
    for (const auto& e : stdfs::directory_iterator(*draft / "segments"))
      names.push_back(e.path().filename());
    for (const std::string& name : names) {
      const uint64_t size = stdfs::file_size(*draft / "segments" / name);
      INFO("segment " << name << " of " << size);
      for (uint64_t at = 0; at < size; at += flips() > 0 ? 512 : 8192) {
        INFO("byte " << at);
        Damaged damaged(story, *draft);
        flip(damaged.dir / "segments" / name, at, 3);
        damaged.check();
      }
      for (uint64_t cut : {uint64_t{0}, size / 2}) {
        INFO("cut to " << cut);
        Damaged damaged(story, *draft);
        stdfs::resize_file(damaged.dir / "segments" / name, cut);
        damaged.check();
      }
      INFO("missing");
      Damaged damaged(story, *draft);
      stdfs::remove(damaged.dir / "segments" / name);
      damaged.check();
    }
  }
}
