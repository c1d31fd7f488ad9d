// SPDX-License-Identifier: Apache-2.0
// A disk that kept the switch record and lost what was staged before it: the
// order of the protocol does not allow it, and nothing relies on that.
#include <sched.h>
#include <sys/mount.h>

#include "base/hash.h"
#include "gate/commits.h"
#include "gate/pending.h"
#include "tree_fixture.h"

using namespace stoplog;
using namespace stoplog::gate;
using namespace stoplog::gate::test;
namespace stdfs = std::filesystem;

namespace {

void make_changes(Site& site) {
  for (int i = 0; i < 3; ++i) put(site.ws + fmt::format("/f{}", i), "old");
  put(site.ws + "/gone", "old");
  put(site.ws + "/mode", "same", 0644);
  site.branch();
  for (int i = 0; i < 3; ++i)
    put(site.draft + fmt::format("/f{}", i), fmt::format("new {}", i));
  put(site.draft + "/made", "made");
  put(site.draft + "/sub/deep/n", "deep");
  put(site.draft + "/mode", "same", 0600);
  stdfs::remove(site.draft + "/gone");
}

// Dies when `renames` steps of the switch were made, before the next one or
// before they are synced.
void die_after(Site& site, int renames) {
  auto items = site.items();
  pid_t pid = ::fork();
  if (pid == 0) {
    int seen = 0;
    Disk disk([&](const char* call) {
      // The first rename is the probe of the stage.
      bool next =
          std::string_view(call) == "renameat2" && seen++ == renames + 1;
      bool last = std::string_view(call) == "syncfs" && renames > 0 &&
                  seen == renames + 1;
      if (next || last) ::kill(::getpid(), SIGKILL);
      return 0;
    });
    (void)transact(site.ground(&disk), items, CommitMeta{});
    ::_exit(0);
  }
  int status = 0;
  REQUIRE(::waitpid(pid, &status, 0) == pid);
  REQUIRE(WIFSIGNALED(status));
}

std::vector<std::string> staged_files(const Site& site) {
  std::vector<std::string> files;
  for (const auto& entry :
       stdfs::recursive_directory_iterator(site.state_path + "/pending/stage"))
    if (entry.is_regular_file()) files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  return files;
}

// What stands at the top of the stage: one thing a step.
std::vector<std::string> staged_slots(const Site& site) {
  std::vector<std::string> slots;
  for (const auto& entry :
       stdfs::directory_iterator(site.state_path + "/pending/stage"))
    slots.push_back(entry.path());
  std::sort(slots.begin(), slots.end());
  return slots;
}

// The old thing is in the slot.
bool is_swapped(const std::string& slot) {
  return stdfs::is_regular_file(slot) && get(slot) == "old";
}

enum class Loss { kCut, kZeros, kOther };
void lose(const std::string& file, Loss loss) {
  auto size = stdfs::file_size(file);
  if (loss == Loss::kCut) stdfs::resize_file(file, 0);
  if (loss == Loss::kZeros)
    std::ofstream(file, std::ios::binary) << std::string(size, '\0');
  if (loss == Loss::kOther)
    std::ofstream(file, std::ios::binary) << std::string(size, 'x');
}

}  // namespace

TEST_CASE("a stage that lost its content is never put into the real tree") {
  size_t total = 1;
  for (size_t which = 0; which < total; ++which)
    for (Loss loss : {Loss::kCut, Loss::kZeros, Loss::kOther}) {
      Site site("/dev/shm");
      make_changes(site);
      auto old_tree = tree(site.ws);
      die_after(site, 0);
      auto files = staged_files(site);
      total = files.size();
      REQUIRE(total == 5);
      INFO(files[which]);
      lose(files[which], loss);
      auto report = recover(site.ground());
      REQUIRE(report);
      CHECK(report->what == RecoverReport::What::kBack);
      CHECK(tree(site.ws) == old_tree);
      CHECK(list_commits(site.state.get())->empty());
    }
}

TEST_CASE("a stage whose names were lost takes the commit back") {
  Site site("/dev/shm");
  make_changes(site);
  auto old_tree = tree(site.ws);
  die_after(site, 0);
  for (const std::string& file : staged_files(site))
    if (get(file) == "new 1") stdfs::remove(file);
  auto report = recover(site.ground());
  REQUIRE(report);
  CHECK(report->what == RecoverReport::What::kBack);
  CHECK(tree(site.ws) == old_tree);
  site.check_clean();
}

TEST_CASE("a stage that lost any one name takes the commit back") {
  size_t total = 1;
  for (size_t which = 0; which < total; ++which) {
    Site site("/dev/shm");
    make_changes(site);
    auto old_tree = tree(site.ws);
    die_after(site, 0);
    auto slots = staged_slots(site);
    total = slots.size();
    REQUIRE(total == 5);
    INFO(slots[which]);
    stdfs::remove_all(slots[which]);
    auto report = recover(site.ground());
    REQUIRE(report);
    CHECK(report->what == RecoverReport::What::kBack);
    CHECK(tree(site.ws) == old_tree);
    CHECK(list_commits(site.state.get())->empty());
    site.check_clean();
  }
}

TEST_CASE("a stage that is gone altogether takes the commit back") {
  Site site("/dev/shm");
  make_changes(site);
  auto old_tree = tree(site.ws);
  die_after(site, 0);
  stdfs::remove_all(site.state_path + "/pending/stage");
  auto report = recover(site.ground());
  REQUIRE(report);
  CHECK(report->what == RecoverReport::What::kBack);
  CHECK(tree(site.ws) == old_tree);
  site.check_clean();
}

TEST_CASE("old things that somebody removed from the stage are named") {
  Site site("/dev/shm");
  make_changes(site);
  die_after(site, 3);
  stdfs::remove_all(site.state_path + "/pending/stage");
  auto report = recover(site.ground());
  REQUIRE(report);
  CHECK(report->what == RecoverReport::What::kBack);
  std::set<std::string> named, lost;
  for (const Left& left : report->left) named.insert(left.path.str());
  for (int i = 0; i < 3; ++i)
    if (std::string file = fmt::format("f{}", i);
        get(site.ws + "/" + file) != "old")
      lost.insert(file);
  CHECK_FALSE(lost.empty());
  if (!stdfs::exists(site.ws + "/gone")) lost.insert("gone");
  CHECK(lost.contains("gone"));
  CHECK(named == lost);
  site.check_clean();
}

TEST_CASE("a stage removed after the switch keeps the commit, and is named") {
  for (bool swaps : {false, true}) {
    Site site("/dev/shm");
    put(site.ws + "/a", "old a");
    put(site.ws + "/b", "old b");
    put(site.ws + "/d/x", "old x");
    std::filesystem::create_symlink("a", site.ws + "/link");
    site.branch();
    stdfs::remove(site.draft + "/a");
    stdfs::remove(site.draft + "/link");
    stdfs::remove_all(site.draft + "/d");
    put(site.draft + "/d", "new d");
    put(site.draft + "/made", "made");
    if (swaps) put(site.draft + "/b", "new b");
    auto old_tree = tree(site.ws);
    auto new_tree = tree(site.draft);
    die_after(site, swaps ? 6 : 5);
    stdfs::remove_all(site.state_path + "/pending/stage");
    auto report = recover(site.ground());
    REQUIRE(report);
    CHECK(report->what == RecoverReport::What::kForward);
    CHECK(tree(site.ws) == new_tree);
    std::set<std::string> named;
    for (const Left& left : report->left) named.insert(left.path.str());
    std::set<std::string> lost{"a", "d/x"};
    if (swaps) lost.insert("b");
    CHECK(named == lost);
    CHECK(list_commits(site.state.get())->size() == 1);
    site.check_clean();
    REQUIRE(recover(site.ground()));
  }
}

// Nothing else need be wrong.
TEST_CASE("a file that somebody deleted before the commit did is named") {
  Site site("/dev/shm");
  put(site.ws + "/a", "old a");
  put(site.ws + "/b", "old b");
  site.branch();
  stdfs::remove(site.draft + "/a");
  put(site.draft + "/b", "new b");
  die_after(site, 0);
  stdfs::remove(site.ws + "/a");
  auto report = recover(site.ground());
  REQUIRE(report);
  CHECK(report->what == RecoverReport::What::kForward);
  CHECK(tree(site.ws) == tree(site.draft));
  REQUIRE(report->left.size() == 1);
  CHECK(report->left[0].path.str() == "a");
  site.check_clean();
}

// What replaces a thing of another kind is exchanged for it; a directory that
// is not empty is taken away name by name, and then there is a free place.
TEST_CASE("what is still to leave is not taken for the lost new thing") {
  Site site("/dev/shm");
  put(site.ws + "/d/x", "old");
  site.branch();
  stdfs::remove_all(site.draft + "/d");
  put(site.draft + "/d", "new");
  put(site.draft + "/made", "made");
  auto old_tree = tree(site.ws);
  die_after(site, 0);
  for (const std::string& slot : staged_slots(site))
    if (stdfs::is_regular_file(slot) && get(slot) == "new") stdfs::remove(slot);
  auto report = recover(site.ground());
  REQUIRE(report);
  CHECK(report->what == RecoverReport::What::kBack);
  CHECK(tree(site.ws) == old_tree);
  site.check_clean();
}

TEST_CASE("a lost new file takes back what was switched before it") {
  // How many steps were made when the next slot was lost.
  for (int renames = 1; renames < 7; ++renames) {
    Site site("/dev/shm");
    make_changes(site);
    auto old_tree = tree(site.ws);
    die_after(site, renames);
    std::string lost;
    for (const std::string& slot : staged_slots(site))
      if (!is_swapped(slot)) lost = slot;
    if (lost.empty()) continue;
    INFO(renames << " " << lost);
    stdfs::remove_all(lost);
    auto report = recover(site.ground());
    REQUIRE(report);
    CHECK(report->what == RecoverReport::What::kBack);
    CHECK(tree(site.ws) == old_tree);
    site.check_clean();
  }
}

// Legal, and no loss: it had its place, and later steps were made.
TEST_CASE("a new file that somebody removed after the switch is left out") {
  for (const char* what : {"a", "c"}) {
    Site site("/dev/shm");
    put(site.ws + "/b", "old");
    put(site.ws + "/d", "old");
    site.branch();
    for (const char* name : {"a", "c"}) put(site.draft + "/" + name, "made");
    for (const char* name : {"b", "d"}) put(site.draft + "/" + name, "new");
    die_after(site, 4);
    stdfs::remove(site.ws + "/" + what);
    auto report = recover(site.ground());
    REQUIRE(report);
    CHECK(report->what == RecoverReport::What::kForward);
    REQUIRE(report->left.size() == 1);
    CHECK(report->left[0].path.str() == what);
    CHECK_FALSE(stdfs::exists(site.ws + "/" + what));
    CHECK(get(site.ws + "/b") == "new");
    CHECK(get(site.ws + "/d") == "new");
    site.check_clean();
  }
}

TEST_CASE("a new file that somebody saved anew after the switch is left") {
  Site site("/dev/shm");
  put(site.ws + "/b", "old");
  site.branch();
  put(site.draft + "/b", "new");
  put(site.draft + "/made", "made");
  die_after(site, 2);
  put(site.ws + "/made~", "mine");
  stdfs::rename(site.ws + "/made~", site.ws + "/made");
  auto report = recover(site.ground());
  REQUIRE(report);
  CHECK(report->what == RecoverReport::What::kForward);
  CHECK(get(site.ws + "/made") == "mine");
  CHECK(get(site.ws + "/b") == "new");
}

// Without a later step nothing tells it from a loss: nothing is committed, and
// the draft has it still.
TEST_CASE("the last new file that somebody removed takes the commit back") {
  Site site("/dev/shm");
  put(site.ws + "/b", "old");
  site.branch();
  put(site.draft + "/b", "new");
  put(site.draft + "/made", "made");
  auto old_tree = tree(site.ws);
  die_after(site, 2);
  REQUIRE(get(site.ws + "/made") == "made");
  stdfs::remove(site.ws + "/made");
  auto report = recover(site.ground());
  REQUIRE(report);
  CHECK(report->what == RecoverReport::What::kBack);
  CHECK(tree(site.ws) == old_tree);
  site.check_clean();
}

TEST_CASE("a staged file that the disk cannot read takes the commit back") {
  Site site("/dev/shm");
  make_changes(site);
  auto old_tree = tree(site.ws);
  die_after(site, 0);
  int reads = 0;
  Disk disk([&](const char* call) {
    return std::string_view(call) == "read" && reads++ == 1 ? EIO : 0;
  });
  auto report = recover(site.ground(&disk));
  REQUIRE(report);
  REQUIRE(reads > 1);
  CHECK(report->what == RecoverReport::What::kBack);
  CHECK(tree(site.ws) == old_tree);
  CHECK(list_commits(site.state.get())->empty());
  site.check_clean();
}

// Not what a loss of power does: what was switched goes back, too.
TEST_CASE("a stage that is damaged half-way takes all of the commit back") {
  for (int renames = 1; renames < 4; ++renames) {
    Site site("/dev/shm");
    make_changes(site);
    auto old_tree = tree(site.ws);
    die_after(site, renames);
    for (const std::string& file : staged_files(site))
      if (get(file) == "new 2") lose(file, Loss::kZeros);
    auto report = recover(site.ground());
    REQUIRE(report);
    CHECK(report->what == RecoverReport::What::kBack);
    CHECK(tree(site.ws) == old_tree);
  }
}

namespace {

constexpr int kNoMounts = 77;

// A commit with a file on a tmpfs at ws/mnt and one beside it died after its
// first step, in a namespace of its own; `body` says what is wrong, or 0.
void with_half_on_a_mount(
    const std::function<int(Site&, const std::string&)>& body) {
  if (::geteuid() != 0) return;
  Site site;
  std::string mnt = site.ws + "/mnt";
  stdfs::create_directory(mnt);
  pid_t pid = ::fork();
  if (pid == 0) {
    if (::unshare(CLONE_NEWNS) != 0 ||
        ::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
        ::mount("none", mnt.c_str(), "tmpfs", 0, "size=1m") != 0)
      ::_exit(kNoMounts);
    // Descriptors of before see the mounts of before.
    site.root = open_dir(site.ws);
    site.state = open_dir(site.state_path);
    put(mnt + "/there", "old");
    put(site.ws + "/z", "old");
    site.branch();
    put(site.draft + "/mnt/there", "new");
    put(site.draft + "/z", "new");
    die_after(site, 2);  // with two probes: one step was made
    if (tree(site.ws) == tree(site.draft)) ::_exit(1);
    ::_exit(body(site, mnt));
  }
  int status = 0;
  ::waitpid(pid, &status, 0);
  REQUIRE(WIFEXITED(status));
  if (WEXITSTATUS(status) != kNoMounts) CHECK(WEXITSTATUS(status) == 0);
}

bool move_mount(const std::string& from, const std::string& to) {
  return ::mount(from.c_str(), to.c_str(), nullptr, MS_MOVE, nullptr) == 0;
}

// Both what to mount and what to give up are named.
bool is_waiting(Site& site) {
  auto waits = recover(site.ground());
  return !waits && waits.error().code() == Code::kUnsupported &&
         waits.error().hint().find("mnt") != std::string::npos &&
         waits.error().hint().find(site.state_path + "/pending") !=
             std::string::npos;
}

int check_finished(Site& site) {
  auto report = recover(site.ground());
  if (!report || report->what != RecoverReport::What::kForward) return 20;
  return tree(site.ws) == tree(site.draft) ? 0 : 21;
}

}  // namespace

TEST_CASE("a stage whose file system is not mounted now is waited for") {
  with_half_on_a_mount([](Site& site, const std::string& mnt) {
    std::string away = site.top + "/away";
    stdfs::create_directory(away);
    if (!move_mount(mnt, away)) return 2;
    if (!is_waiting(site)) return 3;
    stdfs::remove(mnt);
    if (!is_waiting(site)) return 4;
    stdfs::create_directory(mnt);
    if (!move_mount(away, mnt)) return 5;
    return check_finished(site);
  });
}

TEST_CASE("another file system in the place of a stage's is not touched") {
  with_half_on_a_mount([](Site& site, const std::string& mnt) {
    // A kernel of before that time of birth cannot tell them apart.
    if (sys::statat(AT_FDCWD, mnt)->btime.tv_sec == 0) return kNoMounts;
    std::string away = site.top + "/away";
    stdfs::create_directory(away);
    if (!move_mount(mnt, away)) return 2;
    if (::mount("none", mnt.c_str(), "tmpfs", 0, "size=1m") != 0) return 3;
    put(mnt + "/there", "other");
    auto before = tree(site.ws);
    if (!is_waiting(site)) return 4;
    if (tree(site.ws) != before) return 5;
    if (::umount2(mnt.c_str(), MNT_DETACH) != 0) return 6;
    if (!move_mount(away, mnt)) return 7;
    return check_finished(site);
  });
}

// The same one: somebody removed the stage.
TEST_CASE("a stage that is gone from its own file system is made again") {
  with_half_on_a_mount([](Site& site, const std::string& mnt) {
    for (const auto& entry : stdfs::directory_iterator(mnt))
      if (entry.path().filename().string().starts_with(".stoplog"))
        stdfs::remove_all(entry.path());
    // The step was made there: only what it replaced is lost.
    auto report = recover(site.ground());
    if (!report || report->what != RecoverReport::What::kForward) return 2;
    if (report->left.size() != 1) return 3;
    return tree(site.ws) == tree(site.draft) ? 0 : 4;
  });
}

TEST_CASE("a switch record of before stages were known again is read") {
  SwitchRecord record;
  record.meta.id = "0123456789abcdef";
  record.stages.push_back(
      {.in_state = false, .dir = *RelPath::parse("mnt"), .ino = 7});
  std::string bytes = encode(record);
  auto now = decode_switch(bytes);
  REQUIRE(now);
  CHECK(now->stages.at(0).ino == 7);
  bytes.resize(bytes.size() - 8);
  bytes.replace(bytes.find(" switch 3"), 9, " switch 2");
  bytes.erase(bytes.find("mnt") + 3, 8 + 12);
  uint64_t check = xxh3_64(std::as_bytes(std::span(bytes)));
  bytes.append(reinterpret_cast<const char*>(&check), sizeof check);
  auto before = decode_switch(bytes);
  REQUIRE(before);
  CHECK(before->stages.at(0).dir.str() == "mnt");
  CHECK(before->stages.at(0).ino == 0);
}
