// SPDX-License-Identifier: Apache-2.0
#include "gate/dir_times.h"

#include <sys/wait.h>

#include <csignal>

#include "gate/commits.h"
#include "gate/gate.h"
#include "tree_fixture.h"

using namespace stoplog;
using namespace stoplog::gate;
using namespace stoplog::gate::test;

namespace {

// The times of everything, directories and the top among them.
std::map<std::string, std::pair<time_t, long>> times(const std::string& top) {
  std::map<std::string, std::pair<time_t, long>> all;
  auto add = [&](const std::string& path) {
    struct stat st{};
    ::lstat(path.c_str(), &st);
    all.emplace(path.substr(top.size()),
                std::pair(st.st_mtim.tv_sec, st.st_mtim.tv_nsec));
  };
  add(top);
  for (const auto& entry : std::filesystem::recursive_directory_iterator(top))
    add(entry.path());
  return all;
}

void set_all_times(const std::string& top) {
  time_t second = 1'000'000'000;
  auto set = [&](const std::string& path) {
    timespec both[2] = {{++second, 111}, {second, 222}};
    ::utimensat(AT_FDCWD, path.c_str(), both, AT_SYMLINK_NOFOLLOW);
  };
  set(top);
  for (const auto& entry : std::filesystem::recursive_directory_iterator(top))
    set(entry.path());
}

void make_trees(Site& site) {
  put(site.ws + "/dir/a", "a");
  put(site.ws + "/dir/sub/b", "b");
  put(site.ws + "/old/x", "x");
  put(site.ws + "/old/deep/y", "y");
  put(site.ws + "/moves/in/m", "m");
  put(site.ws + "/stays/s", "s");
  put(site.ws + "/out/o", "moves out of what goes");
  std::filesystem::create_symlink("dir", site.ws + "/link");
  site.branch();
  const std::string& d = site.draft;
  put(d + "/dir/a", "another a");
  put(d + "/dir/sub/new", "new");
  std::filesystem::remove_all(d + "/old");
  ::rename((d + "/moves").c_str(), (d + "/moved").c_str());
  put(d + "/moved/in/new", "beneath what moved");
  ::rename((d + "/out/o").c_str(), (d + "/o").c_str());
  std::filesystem::remove(d + "/out");
  std::filesystem::remove(d + "/link");
  put(d + "/made/by/commit", "c");
  set_all_times(site.ws);
}
const std::map<std::string, std::string> kMoved = {{"moved", "moves"},
                                                   {"o", "out/o"}};

}  // namespace

TEST_CASE("an undo gives files and directories the times that they had") {
  Site site;
  make_trees(site);
  auto before = times(site.ws);
  auto content = tree(site.ws);
  REQUIRE(site.commit(kMoved));
  auto after = times(site.ws);
  auto undone = undo({.ground = site.ground(), .number = {}, .meta = {}});
  REQUIRE(undone);
  CHECK(tree(site.ws) == content);
  CHECK(times(site.ws) == before);
  REQUIRE(undo({.ground = site.ground(), .number = 2, .meta = {}}));
  CHECK(times(site.ws) == after);
  REQUIRE(undo({.ground = site.ground(), .number = 3, .meta = {}}));
  CHECK(times(site.ws) == before);
}

TEST_CASE("a directory that somebody changed since keeps its time in an undo") {
  Site site;
  make_trees(site);
  auto before = times(site.ws);
  REQUIRE(site.commit(kMoved));
  put(site.ws + "/dir/sub/person", "p");
  auto changed = times(site.ws).at("/dir/sub");
  REQUIRE(undo({.ground = site.ground(), .number = {}, .meta = {}}));
  auto now = times(site.ws);
  CHECK(now.at("/dir/sub") >= changed);
  CHECK(now.at("/dir") == before.at("/dir"));
}

TEST_CASE(
    "what somebody makes in a directory during an undo shows in its time") {
  int total = 0, given_back = 0;
  for (int k = 1; k == 1 || k <= total; ++k) {
    Site site("/dev/shm");
    make_trees(site);
    auto before = times(site.ws);
    REQUIRE(site.commit(kMoved));
    int n = 0;
    Disk disk([&](const char*) {
      if (++n != k) return 0;
      put(site.ws + "/dir/sub/person", "p");
      return 0;
    });
    auto undone =
        undo({.ground = site.ground(&disk), .number = {}, .meta = {}});
    if (k == 1) total = n;
    INFO("call " << k << " of " << total);
    REQUIRE(undone);
    CHECK(get(site.ws + "/dir/sub/person") == "p");
    auto now = times(site.ws);
    // Not that of long ago.
    CHECK(now.at("/dir/sub").first > before.at("/dir/sub").first + 1000);
    // Others have theirs all the same.
    CHECK(now.at("/stays") == before.at("/stays"));
    if (now.at("") == before.at("")) ++given_back;
  }
  CHECK(total > 50);
  CHECK(given_back == total);
}

TEST_CASE("an undo that was killed gives the times when it is finished") {
  int total = 0;
  {
    Site site("/dev/shm");
    make_trees(site);
    REQUIRE(site.commit(kMoved));
    Disk disk([&](const char*) { return ++total, 0; });
    REQUIRE(undo({.ground = site.ground(&disk), .number = {}, .meta = {}}));
  }
  int finished = 0;
  for (int k = 1; k <= total; k += 2) {
    Site site("/dev/shm");
    make_trees(site);
    auto before = times(site.ws);
    auto content = tree(site.ws);
    REQUIRE(site.commit(kMoved));
    pid_t pid = ::fork();
    if (pid == 0) {
      int n = 0;
      Disk disk([&](const char*) {
        if (++n == k) ::kill(::getpid(), SIGKILL);
        return 0;
      });
      (void)undo({.ground = site.ground(&disk), .number = {}, .meta = {}});
      ::_exit(0);
    }
    int status = 0;
    REQUIRE(::waitpid(pid, &status, 0) == pid);
    REQUIRE(recover(site.ground()));
    INFO("call " << k);
    if (tree(site.ws) != content) continue;
    CHECK(times(site.ws) == before);
    ++finished;
  }
  CHECK(finished > 0);
}

TEST_CASE("records from before directories had times are read") {
  CommitRecord record;
  record.dirs.push_back({.path = *RelPath::parse("a"),
                         .now = *RelPath::parse("b"),
                         .before = timespec{1, 2},
                         .want = {},
                         .after = timespec{3, 4}});
  auto read = decode_commit(encode(record));
  REQUIRE(read);
  REQUIRE(read->dirs.size() == 1);
  CHECK(read->dirs[0].now.str() == "b");
  CHECK(read->dirs[0].after->tv_sec == 3);
  CHECK_FALSE(read->dirs[0].want);
  // The same without the list, as the first version wrote it.
  std::string old = encode(CommitRecord{});
  old.resize(old.size() - 12);
  old[15] = '1';
  uint64_t check = xxh3_64(std::as_bytes(std::span(old)));
  for (int i = 0; i < 8; ++i)
    old += static_cast<char>((check >> (8 * i)) & 0xff);
  REQUIRE(decode_commit(old));
}
