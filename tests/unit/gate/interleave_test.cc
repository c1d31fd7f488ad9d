// SPDX-License-Identifier: Apache-2.0
// Every order of a person's reads and saves and the steps of a commit, one
// after the other: whatever was saved is in the tree afterwards, or was named
// and kept.
#include <sys/wait.h>

#include <csignal>

#include "gate/commits.h"
#include "gate/gate.h"
#include "tree_fixture.h"

using namespace stoplog;
using namespace stoplog::gate;
using namespace stoplog::gate::test;

namespace {

// A program that reads a file, adds a line and saves it, each at a moment of
// the test's choosing.
class Editor {
 public:
  Editor(std::string file, bool in_place)
      : file_(std::move(file)), in_place_(in_place) {}
  ~Editor() { CHECK(waiting_ < 0); }
  void read() {
    if (waiting_ >= 0) return;  // it waits in its save
    text_ = get(file_);
    fresh_ = true;
  }
  // Finds the file, as open(2) does, and gets no further for now.
  void find() {
    waiting_ = ::open(file_.c_str(), O_PATH | O_NOFOLLOW);
    if (waiting_ >= 0) text_ = fmt::format("save {}.\n", ++saves_);
  }
  void save(const char* word = "save") {
    if (waiting_ >= 0 || !fresh_) return;
    fresh_ = false;
    text_ += fmt::format("{} {}.\n", word, ++saves_);
    if (!in_place_) {
      put(file_ + "~", text_);
      REQUIRE(::rename((file_ + "~").c_str(), file_.c_str()) == 0);
      return;
    }
    int fd = ::open(file_.c_str(), O_PATH | O_NOFOLLOW);
    if (fd < 0) {  // it is not there: made anew
      put(file_, text_);
      return;
    }
    waiting_ = fd;
    go_on();
  }
  // open(2) has found the file and waits as long as the commit holds it still.
  // Here both are one process: it is tried again at every step.
  void go_on() {
    if (waiting_ < 0) return;
    int fd = ::open(fmt::format("/proc/self/fd/{}", waiting_).c_str(),
                    O_WRONLY | O_TRUNC | O_NONBLOCK);
    if (fd < 0 && errno == EWOULDBLOCK) return;
    // Of a symlink, or the like.
    if (fd < 0) --saves_;
    if (fd >= 0 && ::write(fd, text_.data(), text_.size()) < 0) ::abort();
    ::close(fd);
    ::close(waiting_);
    waiting_ = -1;
  }
  int saves() const { return saves_; }
  bool waits() const { return waiting_ >= 0; }
  void give_up() {
    if (waiting_ >= 0) ::close(waiting_);
    waiting_ = -1;
  }

 private:
  std::string file_, text_;
  bool in_place_, fresh_ = false;
  int saves_ = 0;
  int waiting_ = -1;
};

enum class Shape { kEdit, kDelete, kMove, kMoveAndEdit, kCreate, kTypeChange };

void make(Site& site, Shape shape, const std::string& file) {
  put(site.ws + "/other", "old");
  put(site.ws + "/dir/x", "old");
  if (shape != Shape::kCreate) put(site.ws + "/" + file, "base\n");
  std::filesystem::remove(site.draft);
  std::filesystem::copy(site.ws, site.draft,
                        std::filesystem::copy_options::recursive);
  site.side = open_dir(site.draft);
  std::string there = site.draft + "/" + file;
  switch (shape) {
    case Shape::kEdit:
    case Shape::kCreate:
      put(there, "base\nagent\n");
      break;
    case Shape::kDelete:
      std::filesystem::remove(there);
      break;
    case Shape::kMove:
      std::filesystem::rename(there, there + ".moved");
      break;
    case Shape::kMoveAndEdit:
      std::filesystem::remove(there);
      put(there + ".moved", "base\nagent\n");
      break;
    case Shape::kTypeChange:
      std::filesystem::remove(there);
      std::filesystem::create_symlink("other", there);
      break;
  }
  put(site.draft + "/other", "new");
}

std::map<std::string, std::string> moved(Shape shape, const std::string& file) {
  if (shape == Shape::kMove || shape == Shape::kMoveAndEdit)
    return {{file + ".moved", file}};
  return {};
}

// Everything that a person can still find: in the tree, and in what was named.
std::string findable(Site& site, const std::string& told) {
  std::string all;
  for (const auto& entry :
       std::filesystem::recursive_directory_iterator(site.ws))
    if (entry.is_regular_file() && !entry.is_symlink())
      all += get(entry.path());
  for (size_t at = 0; (at = told.find("object ", at)) != std::string::npos;) {
    at += 7;
    Sha256Digest id;
    if (!unhex(told.substr(at, 64), id)) continue;
    auto content = site.store->get(id, 1 << 20);
    REQUIRE(content);
    all += *content;
  }
  // Told by a process that died since.
  auto noted = list_kept(site.state.get());
  REQUIRE(noted);
  for (const Kept& kept : *noted) all += *site.store->get(kept.object, 1 << 20);
  return all;
}

// Calls `at` with the number of each step from the first that touches the tree.
Disk counting(std::function<void(int)> at) {
  return Disk(
      [at, n = 0, renames = 0, staged = false](const char* call) mutable {
        std::string_view name = call;
        // The first rename is the probe of the stage.
        if (name == "lease" || (name == "renameat2" && ++renames == 2))
          staged = true;
        if (staged) at(++n);
        return 0;
      });
}

struct Moments {
  int first, read, second;
};

// One commit with a save at `first`, and another one of what was read at
// `read` at `second`; moments count the calls after everything is staged.
// False when the last of them was never reached.
bool run(Shape shape, bool in_place, Moments moments) {
  const std::string file = "dir/f";
  Site site("/dev/shm");
  make(site, shape, file);
  auto items = site.items(moved(shape, file));
  Editor editor(site.ws + "/" + file, in_place);
  int last = 0;
  Disk disk = counting([&](int n) {
    last = n;
    editor.go_on();
    if (n == moments.first) editor.read(), editor.save();
    if (n == moments.read) editor.read();
    if (n == moments.second) editor.save();
  });
  std::string told;
  auto result = transact(site.ground(&disk), items, CommitMeta{});
  if (!result)
    told += result.error().hint();
  else
    for (const Left& left : result->left) told += left.text();
  editor.go_on();
  auto recovered = recover(site.ground());
  REQUIRE(recovered);
  told += recovered->text();
  INFO("save at " << moments.first << ", read at " << moments.read
                  << ", save at " << moments.second << ", shape "
                  << static_cast<int>(shape)
                  << (in_place ? ", in place" : ", by rename")
                  << "; told: " << (result ? "done" : result.error().text())
                  << " | " << told);
  std::string all = findable(site, told);
  for (int i = 1; i <= editor.saves(); ++i)
    CHECK(all.find(fmt::format("save {}.", i)) != std::string::npos);
  site.check_clean();
  // What nobody else touched is all old or all new.
  CHECK(get(site.ws + "/other") == (result ? "new" : "old"));
  return last >= moments.second;
}

// The first save in every moment until the switch is over, the others in the
// moments after it; far from each other only some of them, for time.
void run_all(Shape shape, bool in_place) {
  bool reached = true;
  for (int first = 1; first <= 13; ++first)
    for (int read = first; read <= first + 9; ++read) {
      reached = true;
      for (int second = read; reached; second += second < read + 5 ? 1 : 8)
        reached = run(shape, in_place, {first, read, second});
    }
  CHECK(!reached);
}

// A save at `first`, death at `death`; somebody looks at the file then, and
// saves that at step `second` of the recovery, or before it for 0.
bool die(Shape shape, int first, int death, int second) {
  const std::string file = "dir/f";
  Site site("/dev/shm");
  make(site, shape, file);
  auto items = site.items(moved(shape, file));
  pid_t pid = ::fork();
  if (pid == 0) {
    Editor editor(site.ws + "/" + file, false);
    Disk disk = counting([&](int n) {
      if (n == first) editor.read(), editor.save();
      if (n == death) ::kill(::getpid(), SIGKILL);
    });
    (void)transact(site.ground(&disk), items, CommitMeta{});
    ::_exit(0);
  }
  int status = 0;
  REQUIRE(::waitpid(pid, &status, 0) == pid);
  Editor editor(site.ws + "/" + file, false);
  editor.read();
  if (second == 0) editor.save("later");
  int n = 0;
  Disk disk([&](const char*) {
    if (++n == second) editor.save("later");
    return 0;
  });
  auto recovered = recover(site.ground(&disk));
  INFO("save at " << first << ", death at " << death << ", save at " << second
                  << " of the recovery, shape " << static_cast<int>(shape));
  REQUIRE(recovered);
  INFO(recovered->text());
  std::string all = findable(site, recovered->text());
  CHECK(all.find("save 1.") != std::string::npos);
  if (editor.saves() > 0) CHECK(all.find("later 1.") != std::string::npos);
  site.check_clean();
  std::string other = get(site.ws + "/other");
  CHECK(other == (list_commits(site.state.get())->empty() ? "old" : "new"));
  return WIFSIGNALED(status);
}

}  // namespace

TEST_CASE("no order of two saves by rename and a commit loses one") {
  for (Shape shape : {Shape::kEdit, Shape::kDelete, Shape::kMove,
                      Shape::kMoveAndEdit, Shape::kCreate, Shape::kTypeChange})
    run_all(shape, false);
}

TEST_CASE("no order of two saves in place and a commit loses one") {
  for (Shape shape : {Shape::kEdit, Shape::kDelete, Shape::kMove,
                      Shape::kMoveAndEdit, Shape::kCreate, Shape::kTypeChange})
    run_all(shape, true);
}

// Files of others cannot be held still: what left is compared again afterwards,
// and that alone sees an edit that came behind the first comparison.
TEST_CASE("no save in place of a file that cannot be held still is lost") {
  if (::geteuid() != 0) return;
  constexpr uid_t kUser = 65533;
  for (Shape shape : {Shape::kEdit, Shape::kDelete, Shape::kMove,
                      Shape::kMoveAndEdit, Shape::kTypeChange}) {
    int undone = 0;
    bool reached = true;
    for (int k = 1; reached; ++k) {
      Site site("/dev/shm");
      make(site, shape, "dir/f");
      for (const std::string& dir :
           {site.top, site.ws, site.ws + "/dir", site.state_path,
            site.top + "/objects", site.top + "/objects/loose",
            site.top + "/objects/packs", site.top + "/objects/lock"})
        (void)::chown(dir.c_str(), kUser, kUser);
      ::chmod((site.ws + "/dir/f").c_str(), 0666);
      auto items = site.items(moved(shape, "dir/f"));
      Editor editor(site.ws + "/dir/f", true);
      int last = 0;
      Disk disk = counting([&](int n) {
        last = n;
        if (n == k) editor.read(), editor.save();
      });
      REQUIRE(::setegid(kUser) == 0);
      REQUIRE(::seteuid(kUser) == 0);
      auto result = transact(site.ground(&disk), items, CommitMeta{});
      auto recovered = recover(site.ground());
      REQUIRE(::seteuid(0) == 0);
      REQUIRE(::setegid(0) == 0);
      std::string told;
      if (!result) told = result.error().hint();
      if (result)
        for (const std::string& warning : result->warnings) told += warning;
      INFO("save at " << k << ", shape " << static_cast<int>(shape) << ": "
                      << (result ? "done" : result.error().text()) << " | "
                      << told);
      REQUIRE(recovered);
      REQUIRE(!editor.waits());
      undone += result ? 0 : 1;
      if (editor.saves() > 0)
        CHECK(findable(site, told).find("save 1.") != std::string::npos);
      site.check_clean();
      CHECK(get(site.ws + "/other") == (result ? "new" : "old"));
      reached = last >= k;
    }
    // Before the first comparison, and between it and the last.
    CHECK(undone > 1);
  }
}

TEST_CASE("no save is lost with a commit that was killed") {
  for (Shape shape : {Shape::kEdit, Shape::kDelete, Shape::kMove,
                      Shape::kMoveAndEdit, Shape::kCreate, Shape::kTypeChange})
    for (int first = 1; first <= 6; ++first) {
      bool died = true;
      for (int death = first; died && death < first + 14; ++death)
        for (int second : {0, 9, 19}) died = die(shape, first, death, second);
    }
}

TEST_CASE("a program that found a file before it left and writes to it later") {
  for (Shape shape : {Shape::kEdit, Shape::kDelete, Shape::kMoveAndEdit})
    for (int found = 1; found <= 5; ++found) {
      bool reached = true;
      for (int written = found; reached; ++written) {
        Site site("/dev/shm");
        make(site, shape, "dir/f");
        Editor editor(site.ws + "/dir/f", true);
        int last = 0, packs = 0;
        // Who comes after the last look at it comes too late.
        bool over = false;
        Disk count = counting([&](int n) {
          last = n;
          if (n == found) editor.find();
          if (n >= written && !over) editor.go_on();
        });
        Disk disk([&](const char* call) {
          bool counted = count.step(call).has_value();
          std::string_view name = call;
          if (name == "pack") ++packs;
          over = over || (packs == 2 && name == "statx");
          return counted ? 0 : EIO;
        });
        auto result = transact(site.ground(&disk),
                               site.items(moved(shape, "dir/f")), CommitMeta{});
        std::string told;
        if (!result) told = result.error().hint();
        if (result)
          for (const std::string& warning : result->warnings) told += warning;
        INFO("found at " << found << ", written at " << written << ", shape "
                         << static_cast<int>(shape) << ": " << told);
        reached = last >= written;
        if (editor.saves() > 0 && !editor.waits())
          CHECK(findable(site, told).find("save 1.") != std::string::npos);
        editor.give_up();
        site.check_clean();
      }
    }
}

TEST_CASE("a late write is kept when the commit died tidying up") {
  for (Shape shape : {Shape::kEdit, Shape::kDelete}) {
    Site site("/dev/shm");
    make(site, shape, "dir/f");
    auto items = site.items();
    Editor editor(site.ws + "/dir/f", true);
    editor.find();
    pid_t pid = ::fork();
    if (pid == 0) {
      int packs = 0;
      bool done = false;
      Disk disk([&](const char* call) {
        // The record is on the disk, and the old files are about to go.
        if (done) ::kill(::getpid(), SIGKILL);
        packs += call == std::string_view("pack");
        done = packs == 2 && call == std::string_view("syncfs");
        return 0;
      });
      (void)transact(site.ground(&disk), items, CommitMeta{});
      ::_exit(0);
    }
    int status = 0;
    REQUIRE(::waitpid(pid, &status, 0) == pid);
    REQUIRE(WIFSIGNALED(status));
    editor.go_on();
    REQUIRE(!editor.waits());
    auto recovered = recover(site.ground());
    REQUIRE(recovered);
    CHECK(recovered->what == RecoverReport::What::kForward);
    CHECK(recovered->text().find("dir/f") != std::string::npos);
    CHECK(findable(site, recovered->text()).find("save 1.") !=
          std::string::npos);
    site.check_clean();
  }
}

TEST_CASE("a directory on its way is kept when its name is taken meanwhile") {
  bool kept_beside = false;
  for (int k = 1;; ++k) {
    Site site("/dev/shm");
    put(site.ws + "/a/inside", "precious");
    put(site.ws + "/z", "old");
    site.branch();
    std::filesystem::create_directory(site.draft + "/new");
    std::filesystem::rename(site.draft + "/a", site.draft + "/new/a");
    put(site.draft + "/z", "new");
    auto items = site.items({{"new/a", "a"}});
    int n = 0, syncs = 0;
    Disk disk([&](const char* call) {
      std::error_code ignored;
      // Somebody makes the directory anew; and the commit fails afterwards.
      if (++n == k &&
          std::filesystem::create_directory(site.ws + "/a", ignored))
        put(site.ws + "/a/note", "PERSON");
      return std::string_view(call) == "syncfs" && ++syncs == 2 ? EIO : 0;
    });
    auto result = transact(site.ground(&disk), items, CommitMeta{});
    REQUIRE(recover(site.ground()));
    INFO("call " << k);
    std::string all = findable(site, result ? "" : result.error().hint());
    CHECK(all.find("precious") != std::string::npos);
    bool note = std::filesystem::exists(site.ws + "/a/note");
    if (note && !std::filesystem::exists(site.ws + "/new/a/inside")) {
      kept_beside = true;
      REQUIRE(!result);
      CHECK(result.error().hint().find("a.kept-") != std::string::npos);
    }
    site.check_clean();
    if (n < k) break;
  }
  CHECK(kept_beside);
}
