// SPDX-License-Identifier: Apache-2.0
// A disk that kept the switch record and lost what was staged before it: the
// order of the protocol does not allow it, and nothing relies on that.
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

// Dies when `renames` steps of the switch were made.
void die_after(Site& site, int renames) {
  auto items = site.items();
  pid_t pid = ::fork();
  if (pid == 0) {
    int seen = 0;
    Disk disk([&](const char* call) {
      // The first rename is the probe of the stage.
      if (std::string_view(call) == "renameat2" && seen++ == renames + 1)
        ::kill(::getpid(), SIGKILL);
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
