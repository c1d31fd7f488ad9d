// SPDX-License-Identifier: Apache-2.0
// Power that fails and daemons that are killed, at any moment of a history with
// marks, rollbacks, checkpoints and gc. STOPLOG_LOSS_SEEDS: how many histories,
// 4 when not set.
#include <sys/wait.h>

#include <csignal>
#include <random>

#include "catch_shim.h"
#include "fs/draft_view.h"
#include "fs/gc.h"
#include "tree_fixture.h"

using namespace stoplog;
using namespace stoplog::fs;
using namespace stoplog::test;
namespace stdfs = std::filesystem;

namespace {

constexpr size_t kPage = 4096;

unsigned seeds() {
  const char* text = ::getenv("STOPLOG_LOSS_SEEDS");
  return text != nullptr ? unsigned(std::atoi(text)) : 4;
}

// All files of a draft, by path beneath it; links by their target.
using Disk = std::map<std::string, std::string>;

Disk read_disk(const TempDir& draft) {
  Disk disk;
  for (const char* part : {"journal", "segments"})
    for (const auto& e : stdfs::directory_iterator(draft / part)) {
      std::string name = stdfs::relative(e.path(), draft.path());
      if (e.is_symlink()) {
        disk[name] = "->" + stdfs::read_symlink(e.path()).string();
        continue;
      }
      std::ostringstream all;
      all << std::ifstream(e.path(), std::ios::binary).rdbuf();
      disk[name] = all.str();
    }
  return disk;
}

void write_disk(const Disk& disk, const TempDir& draft) {
  for (const char* part : {"journal", "segments"}) {
    stdfs::remove_all(draft / part);
    draft.mkdir(part);
  }
  for (const auto& [name, bytes] : disk) {
    if (bytes.starts_with("->"))
      stdfs::create_symlink(bytes.substr(2), draft / name);
    else
      draft.write(name, bytes);
  }
}

// What may be on the disk when power fails after `now`, with all up to `synced`
// on it for sure: of what was written since, each page or not, and a page in
// part. Names come and go in order: `names` says whether they did.
Disk lose_power(const Disk& synced, const Disk& now, bool names,
                std::mt19937& random) {
  Disk disk;
  for (const auto& [name, bytes] : names ? now : synced) {
    auto was = synced.find(name), is = now.find(name);
    if (bytes.starts_with("->") || is == now.end()) {
      disk[name] = bytes;
      continue;
    }
    const std::string before = was != synced.end() ? was->second : "";
    std::string after = before;
    const std::string& full = is->second;
    if (random() % 4 != 0) after.resize(full.size());
    for (size_t at = 0; at < after.size() && at < full.size(); at += kPage) {
      size_t length = std::min({kPage, after.size() - at, full.size() - at});
      if (random() % 3 == 0) continue;
      if (random() % 4 == 0) length = length / 512 * 512 * (random() % 2) / 2;
      after.replace(at, length, full, at, length);
    }
    disk[name] = after;
  }
  return disk;
}

// A history that says what was synced when.
class Loss {
 public:
  explicit Loss(unsigned seed) : random_(seed) {
    f_.base.write("low", std::string(30000, 'l'));
    f_.options.take_whole = 20000;
    f_.open();
    sync();
  }

  void run(int steps) {
    for (int i = 0; i < steps; ++i) {
      step(i);
      Disk now = read_disk(f_.draft);
      // New generations are synced with their names, before they count.
      for (bool names : {true, false}) {
        if (!names && generations(now) != generations(synced_)) continue;
        check(lose_power(synced_, now, names, random_));
      }
    }
  }

 private:
  static std::set<std::string> generations(const Disk& disk) {
    std::set<std::string> names;
    for (const auto& [name, bytes] : disk)
      if (name.starts_with("journal/")) names.insert(name);
    return names;
  }
  void sync() {
    REQUIRE(f_.tree->fsync());
    synced_ = read_disk(f_.draft);
    safe_ = held_;
  }
  void step(int i) {
    switch (random_() % 8) {
      case 0:
        marks_.push_back(f_.tree->mark(MarkKind::kNamed, 0, "")->position);
        kept_[marks_.back()] = held_;
        break;
      case 1:
        REQUIRE(f_.tree->settle());
        // It syncs when it has something to give back; not for sure.
        break;
      case 2:
        sync();
        break;
      case 3:
        if (random_() % 4 == 0) roll();
        break;
      default: {
        std::string name = "f" + std::to_string(random_() % 5);
        std::string text(random_() % 9000, char('a' + i % 26));
        if (f_.at(name) != 0) {
          f_.unlink(name);
          held_.erase(name);
          safe_.erase(name);
        }
        CHECK(f_.create(name, text) == 0);
        held_[name] = text;
      }
    }
  }
  void roll() {
    if (marks_.empty() || random_() % 2 == 0) {
      REQUIRE(f_.tree->checkpoint());
    } else {
      Position to = marks_[random_() % marks_.size()];
      REQUIRE(f_.tree->rollback(to));
      held_ = kept_[to];
    }
    sync();
  }

  void check(const Disk& disk) {
    write_disk(disk, g_.draft);
    auto opened = Tree::open({.draft_dir = g_.draft.fd(),
                              .base = f_.base.fd(),
                              .background = false});
    if (!opened) FAIL(opened.error().text());
    // A later page may be there without the one before it: said, and no more
    // is written.
    if ((*opened)->read_only())
      CHECK_FALSE((*opened)->recovery_notes().empty());
    g_.tree = std::move(*opened);
    g_.looked_up.clear();
    for (const auto& [name, text] : safe_) {
      INFO(name);
      CHECK((g_.read(name) == text));
    }
    ++looked;
    g_.tree.reset();
  }

  std::mt19937 random_;
  TreeFixture f_, g_;
  Disk synced_;
  std::map<std::string, std::string> held_, safe_;
  std::vector<Position> marks_;
  std::map<Position, std::map<std::string, std::string>> kept_;

 public:
  unsigned looked = 0;
};

// In a process of its own: works until it is killed, and says what is done.
[[noreturn]] void work_until_killed(const TempDir& draft, const TempDir& base,
                                    int out, unsigned seed) {
  auto opened = Tree::open({.draft_dir = draft.fd(), .base = base.fd()});
  if (!opened || (*opened)->read_only()) ::_exit(1);
  Tree& tree = **opened;
  tree.start();
  std::mt19937 random(seed);
  const Caller caller{.uid = 1000, .gid = 1000, .umask = 022};
  (void)tree.unlink(kRootId, "tmp", caller);  // of one that was killed
  auto file = tree.lookup(kRootId, "count");
  if (!file) file = tree.mknod(kRootId, "count", S_IFREG | 0644, 0, caller);
  for (uint32_t i = 1;; ++i) {
    auto made = tree.mknod(kRootId, "tmp", S_IFREG | 0644, 0, caller);
    std::string text = std::to_string(i) + std::string(random() % 9000, 'x');
    if (!made || !tree.write(made->id, 0, std::as_bytes(std::span(text)), {}) ||
        !tree.rename(kRootId, "tmp", kRootId, "count", 0, caller))
      ::_exit(2);
    tree.forget(made->id, 1);
    auto mark = tree.mark(MarkKind::kCommandEnd, i, "");
    if (!mark) ::_exit(3);
    Status more;
    if (random() % 8 == 0) more = tree.checkpoint();
    if (random() % 8 == 0) {
      auto back = tree.rollback(mark->position);
      if (!back) ::_exit(4);
    }
    if (random() % 16 == 0)
      if (auto done = tree.gc({.max_age = 0}); !done) ::_exit(5);
    if (!more) ::_exit(6);
    // All of it returned.
    if (::write(out, &i, sizeof i) != sizeof i) ::_exit(7);
  }
}

}  // namespace

TEST_CASE("what was synced survives power loss with any later page on disk") {
  unsigned looked = 0;
  for (unsigned seed = 1; seed <= seeds(); ++seed) {
    INFO("seed " << seed);
    Loss loss(seed);
    loss.run(60);
    looked += loss.looked;
  }
  CHECK(looked > seeds() * 60);
}

TEST_CASE("a process killed amid checkpoints rollbacks and gc loses nothing") {
  std::mt19937 random(9);
  TempDir draft, base;
  for (unsigned round = 0; round < 5 * seeds(); ++round) {
    INFO("round " << round);
    int ends[2];
    REQUIRE(::pipe2(ends, O_CLOEXEC) == 0);
    Fd in(ends[0]), out(ends[1]);
    pid_t pid = ::fork();
    if (pid == 0) work_until_killed(draft, base, out.get(), unsigned(random()));
    out.reset();
    ::usleep(unsigned(2000 + random() % 60'000));
    ::kill(pid, SIGKILL);
    int status = 0;
    REQUIRE(::waitpid(pid, &status, 0) == pid);
    INFO("status " << status);
    REQUIRE(WIFSIGNALED(status));
    uint32_t done = 0, last = 0;
    while (::read(in.get(), &done, sizeof done) == sizeof done) last = done;
    TreeFixture f;
    auto opened = Tree::open(
        {.draft_dir = draft.fd(), .base = base.fd(), .background = false});
    if (!opened) FAIL(opened.error().text());
    CHECK_FALSE((*opened)->read_only());
    for (const std::string& note : (*opened)->recovery_notes())
      CHECK(note.find("unfinished record") != std::string::npos);
    f.tree = std::move(*opened);
    if (last == 0) continue;  // before its first
    uint32_t count = uint32_t(std::atoi(f.read("count").c_str()));
    CHECK((count == last || count == last + 1));
    // And all that it has can be gone back to.
    for (const Mark& mark : f.tree->marks()) {
      auto view = open_view(
          {.draft_dir = draft.fd(), .base = base.fd(), .at = mark.position});
      REQUIRE(view);
      CHECK_FALSE((*view)->damaged());
    }
  }
}
