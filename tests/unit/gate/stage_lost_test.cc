// SPDX-License-Identifier: Apache-2.0
// A disk that kept the switch record and lost what was staged before it: the
// order of the protocol does not allow it, and nothing relies on that.
#include <sys/resource.h>

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

// An agent may nest directories as deep as it likes.
TEST_CASE("a new tree deeper than files may be open is completed") {
  for (int renames = 0; renames < 3; ++renames) {
    Site site("/dev/shm");
    put(site.ws + "/z", "old");
    site.branch();
    std::string deep = site.draft + "/deep";
    for (int i = 0; i < 300; ++i) deep += "/d";
    put(deep + "/file", "far down");
    put(site.draft + "/z", "new");
    die_after(site, renames);
    rlimit before{};
    REQUIRE(::getrlimit(RLIMIT_NOFILE, &before) == 0);
    rlimit few{.rlim_cur = 100, .rlim_max = before.rlim_max};
    REQUIRE(::setrlimit(RLIMIT_NOFILE, &few) == 0);
    auto report = recover(site.ground());
    REQUIRE(::setrlimit(RLIMIT_NOFILE, &before) == 0);
    INFO((report ? report->text() : report.error().text()));
    REQUIRE(report);
    CHECK(report->what == RecoverReport::What::kForward);
    CHECK(tree(site.ws) == tree(site.draft));
    site.check_clean();
  }
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
