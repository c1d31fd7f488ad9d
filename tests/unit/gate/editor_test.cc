// SPDX-License-Identifier: Apache-2.0
// Somebody else writes to the real tree while a commit runs: no save is lost,
// nothing is written where it should not be.
#include <sched.h>
#include <sys/file.h>
#include <sys/mount.h>
#include <sys/wait.h>

#include <chrono>
#include <thread>

#include "gate/commits.h"
#include "tree_fixture.h"

using namespace stoplog;
using namespace stoplog::gate;
using namespace stoplog::gate::test;

namespace {

RelPath path(std::string_view text) { return *RelPath::parse(text); }

// The file as it is now, with a line of the agent's added.
Result<Item> append_line(Site& site, const std::string& name, int k) {
  Disk disk;
  auto now = TRY(disk.look(site.root.get(), name, true));
  Item item;
  item.path = path(name);
  item.old = now->node;
  std::string text = get(site.ws + "/" + name);
  if (sha256(text) != *now->node.sha256)
    return fail(Code::kDrift, "changed while reading");
  text += fmt::format("agent {}\n", k);
  item.fresh = now->node;
  item.fresh->sha256 = sha256(text);
  item.fresh->size = text.size();
  item.content = snapshot::memory_content(std::move(text));
  return item;
}

// Saves line after line until the file "stop" appears; its exit is good.
template <typename Save>
pid_t start_editor(const Site& site, Save save) {
  pid_t pid = ::fork();
  if (pid != 0) return pid;
  std::string stop = site.top + "/stop";
  int n = 0;
  while (::access(stop.c_str(), F_OK) != 0) {
    save(++n);
    std::this_thread::sleep_for(std::chrono::microseconds(200 * (n % 7)));
  }
  put(site.top + "/saved", std::to_string(n));
  ::_exit(0);
}

struct Tally {
  int committed = 0;
  int drifted = 0;
  std::string kept;  // contents that were kept aside and named
};

// Two saves may fall into one switch: then one has the name, and the message
// names the object that holds the other.
std::string kept_content(Site& site, const std::string& hint) {
  Sha256Digest id;
  size_t at = hint.find("object ");
  REQUIRE(at != std::string::npos);
  REQUIRE(unhex(hint.substr(at + 7, 64), id));
  return *site.store->get(id, 1 << 30);
}

// Until both ends of the race were seen often enough, on a busy machine too;
// the bound only keeps a broken commit from running for ever.
Tally commit_often(Site& site, const std::string& name) {
  Tally tally;
  auto until = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  for (int k = 0; (tally.committed < 20 || tally.drifted < 20) &&
                  std::chrono::steady_clock::now() < until;
       ++k) {
    auto item = append_line(site, name, k);
    if (!item) continue;
    auto result = transact(site.ground(), {*item}, CommitMeta{});
    if (result) {
      ++tally.committed;
      CHECK(result->left.empty());
    } else {
      INFO(result.error().text());
      CHECK(result.error().code() == Code::kDrift);
      if (!result.error().hint().empty())
        tally.kept += kept_content(site, result.error().hint());
      ++tally.drifted;
    }
  }
  return tally;
}

void end_editor(const Site& site, pid_t pid) {
  put(site.top + "/stop", "");
  int status = 0;
  REQUIRE(::waitpid(pid, &status, 0) == pid);
  REQUIRE(status == 0);
}

void check_all_saved(const Site& site, const std::string& text) {
  int saved = std::stoi(get(site.top + "/saved"));
  REQUIRE(saved > 0);
  int missing = 0;
  for (int n = 1; n <= saved; ++n)
    if (text.find(fmt::format("save {}.\n", n)) == std::string::npos) ++missing;
  CHECK(missing == 0);
}

}  // namespace

TEST_CASE("an editor that saves by rename loses nothing") {
  Site site("/dev/shm");
  put(site.ws + "/f", "");
  std::string file = site.ws + "/f", temp = site.ws + "/f.tmp";
  pid_t editor = start_editor(site, [&](int n) {
    std::string text = get(file) + fmt::format("save {}.\n", n);
    put(temp, text);
    ::rename(temp.c_str(), file.c_str());
  });
  Tally tally = commit_often(site, "f");
  end_editor(site, editor);
  CHECK(tally.committed > 0);
  CHECK(tally.drifted > 0);
  check_all_saved(site, get(file) + tally.kept);
}

TEST_CASE("an editor that writes in place loses nothing") {
  Site site("/dev/shm");
  put(site.ws + "/f", "");
  std::string file = site.ws + "/f";
  pid_t editor = start_editor(site, [&](int n) {
    int fd = ::open(file.c_str(), O_WRONLY | O_APPEND);
    if (n % 3 == 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    std::string line = fmt::format("save {}.\n", n);
    if (::write(fd, line.data(), line.size()) < 0) ::_exit(1);
    ::close(fd);
  });
  Tally tally = commit_often(site, "f");
  end_editor(site, editor);
  CHECK(tally.committed > 0);
  CHECK(tally.drifted > 0);
  check_all_saved(site, get(file) + tally.kept);
}

TEST_CASE("a file that stays open for writing is not replaced") {
  Site site;
  put(site.ws + "/log", "first\n");
  site.branch();
  put(site.draft + "/log", "replaced\n");
  int fd = ::open((site.ws + "/log").c_str(), O_WRONLY | O_APPEND);
  auto result = site.commit();
  REQUIRE(!result);
  CHECK(result.error().code() == Code::kDrift);
  CHECK(result.error().text().find("open for writing") != std::string::npos);
  CHECK(::write(fd, "second\n", 7) == 7);
  ::close(fd);
  CHECK(get(site.ws + "/log") == "first\nsecond\n");
  site.check_clean();
}

TEST_CASE("a parent swapped for a symlink at any moment leads nowhere") {
  for (int k = 1;; ++k) {
    Site site("/dev/shm");
    put(site.ws + "/dir/edit", "old");
    put(site.ws + "/dir/gone", "old");
    put(site.ws + "/dir/sub/x", "old");
    site.branch();
    put(site.draft + "/dir/edit", "new");
    std::filesystem::remove(site.draft + "/dir/gone");
    put(site.draft + "/dir/fresh", "new");
    put(site.draft + "/dir/sub/x", "new");
    std::string canary = site.top + "/canary";
    put(canary + "/edit", "CANARY");
    put(canary + "/gone", "CANARY");
    put(canary + "/sub/x", "CANARY");
    auto canary_before = tree(canary);
    auto old_dir = tree(site.ws + "/dir");
    auto new_dir = tree(site.draft + "/dir");
    auto items = site.items();
    int n = 0;
    bool swapped = false;
    Disk disk([&](const char*) {
      if (++n == k) {
        std::filesystem::rename(site.ws + "/dir", site.top + "/away");
        std::filesystem::create_symlink(canary, site.ws + "/dir");
        swapped = true;
      }
      return 0;
    });
    auto result = transact(site.ground(&disk), items, CommitMeta{});
    INFO("call " << k);
    CHECK(tree(canary) == canary_before);
    if (!swapped) {
      REQUIRE(result);
      break;
    }
    auto now = tree(site.top + "/away");
    if (result)
      CHECK(now == new_dir);
    else
      CHECK(now == old_dir);
    site.check_clean();
  }
}

// It looks the same in all, and is another one.
TEST_CASE("a parent replaced by its copy at any moment gets no half of it") {
  bool in_copy = false, in_own = false, in_none = false;
  for (int k = 1;; ++k) {
    Site site("/dev/shm");
    put(site.ws + "/dir/edit", "old");
    put(site.ws + "/dir/gone", "old");
    put(site.ws + "/dir/sub/x", "old");
    site.branch();
    std::filesystem::copy(site.ws + "/dir", site.top + "/copy",
                          std::filesystem::copy_options::recursive);
    put(site.draft + "/dir/edit", "new");
    std::filesystem::remove(site.draft + "/dir/gone");
    put(site.draft + "/dir/fresh", "new");
    put(site.draft + "/dir/sub/x", "new");
    auto old_dir = tree(site.ws + "/dir");
    auto new_dir = tree(site.draft + "/dir");
    auto items = site.items();
    int n = 0;
    Disk disk([&](const char*) {
      if (++n != k) return 0;
      std::filesystem::rename(site.ws + "/dir", site.top + "/away");
      std::filesystem::rename(site.top + "/copy", site.ws + "/dir");
      return 0;
    });
    auto result = transact(site.ground(&disk), items, CommitMeta{});
    INFO("call " << k << (result ? "" : ": " + result.error().text()));
    if (n < k) {
      REQUIRE(result);
      break;
    }
    bool own = result && tree(site.top + "/away") == new_dir;
    bool copy = result && !own;
    CHECK(tree(site.top + "/away") == (own ? new_dir : old_dir));
    CHECK(tree(site.ws + "/dir") == (copy ? new_dir : old_dir));
    (own ? in_own : copy ? in_copy : in_none) = true;
    if (!result) CHECK(result.error().code() == Code::kDrift);
    // What is on record is in a directory that is not there any more.
    if (!own) site.check_clean();
  }
  CHECK(in_copy);
  CHECK(in_own);
  CHECK(in_none);
}

TEST_CASE("a file that appears in the way at any moment is kept") {
  for (int k = 1;; ++k) {
    Site site("/dev/shm");
    put(site.ws + "/a", "old");
    put(site.ws + "/z/z", "old");
    site.branch();
    put(site.draft + "/a", "new");
    put(site.draft + "/m", "new");
    std::filesystem::remove_all(site.draft + "/z");
    auto items = site.items();
    int n = 0;
    Disk disk([&](const char*) {
      if (++n == k) {
        std::ofstream(site.ws + "/m", std::ios::app) << "PERSON";
        std::error_code gone;
        if (std::filesystem::is_directory(site.ws + "/z", gone))
          std::ofstream(site.ws + "/z/note") << "PERSON";
      }
      return 0;
    });
    auto result = transact(site.ground(&disk), items, CommitMeta{});
    INFO("call " << k);
    if (n < k) {
      REQUIRE(result);
      break;
    }
    CHECK(get(site.ws + "/m").find("PERSON") != std::string::npos);
    CHECK(get(site.ws + "/a") == (result ? "new" : "old"));
    if (!result) CHECK(get(site.ws + "/z/z") == "old");
    if (std::filesystem::exists(site.ws + "/z/note")) CHECK(!result);
    site.check_clean();
  }
}

TEST_CASE("two commits at once take turns") {
  Site site("/dev/shm");
  put(site.ws + "/a", "old");
  put(site.ws + "/b", "old");
  site.branch();
  put(site.draft + "/a", "new");
  put(site.draft + "/b", "new");
  auto items = site.items();
  REQUIRE(items.size() == 2);
  std::vector<pid_t> children;
  for (const Item& item : items) {
    pid_t pid = ::fork();
    if (pid == 0) {
      auto store = snapshot::ObjectStore::open(site.store_dir.get());
      Ground ground = site.ground();
      ground.objects = &*store;
      auto result = transact(ground, {item}, CommitMeta{});
      ::_exit(result ? 0 : 1);
    }
    children.push_back(pid);
  }
  for (pid_t pid : children) {
    int status = 0;
    ::waitpid(pid, &status, 0);
    CHECK(status == 0);
  }
  CHECK(tree(site.ws) == tree(site.draft));
  CHECK(*list_commits(site.state.get()) == std::vector<uint64_t>{1, 2});
}

TEST_CASE("a commit that cannot get the lock fails clearly") {
  Site site;
  put(site.ws + "/a", "old");
  site.branch();
  put(site.draft + "/a", "new");
  Fd other = open_dir(site.ws);
  REQUIRE(sys::flock(other.get(), LOCK_EX | LOCK_NB));
  Ground ground = site.ground();
  ground.lock_wait = std::chrono::milliseconds(30);
  auto result = transact(ground, site.items(), CommitMeta{});
  REQUIRE(!result);
  CHECK(result.error().text().find("another commit") != std::string::npos);
  CHECK(get(site.ws + "/a") == "old");
}

TEST_CASE("an edit after a crash stays and both contents are kept") {
  Site site("/dev/shm");
  put(site.ws + "/a", "old a");
  put(site.ws + "/b", "old b");
  site.branch();
  put(site.draft + "/a", "new a");
  put(site.draft + "/b", "new b");
  auto items = site.items();
  // Dies with the first of two files switched.
  pid_t pid = ::fork();
  if (pid == 0) {
    int renames = 0;
    Disk disk([&](const char* call) {
      if (std::string_view(call) == "renameat2" && ++renames == 3)
        ::kill(::getpid(), SIGKILL);
      return 0;
    });
    (void)transact(site.ground(&disk), items, CommitMeta{});
    ::_exit(0);
  }
  int status = 0;
  ::waitpid(pid, &status, 0);
  REQUIRE(WIFSIGNALED(status));
  REQUIRE(get(site.ws + "/a") == "new a");
  REQUIRE(get(site.ws + "/b") == "old b");
  put(site.ws + "/b", "a person's b");
  auto report = recover(site.ground());
  REQUIRE(report);
  CHECK(get(site.ws + "/a") == "new a");
  CHECK(get(site.ws + "/b") == "a person's b");
  REQUIRE(report->left.size() == 1);
  CHECK(report->left[0].path == path("b"));
  REQUIRE(report->left[0].kept);
  CHECK(*site.store->get(*report->left[0].kept, 100) == "new b");
  CHECK(report->text().find("b ") != std::string::npos);
  // What the record says was committed is what was committed.
  REQUIRE(report->record);
  REQUIRE(report->record->items.size() == 1);
  CHECK(report->record->items[0].path == path("a"));
  site.check_clean();
}

TEST_CASE("a crash that lost some of the last renames is finished") {
  // As after power loss: the switch record is there, and any prefix of the
  // renames is.
  int total = 0;
  for (int keep = 0; keep <= total; ++keep) {
    Site site("/dev/shm");
    for (int i = 0; i < 4; ++i) put(site.ws + fmt::format("/f{}", i), "old");
    put(site.ws + "/gone", "old");
    site.branch();
    for (int i = 0; i < 4; ++i) put(site.draft + fmt::format("/f{}", i), "new");
    put(site.draft + "/sub/n", "new");
    std::filesystem::remove(site.draft + "/gone");
    auto items = site.items();
    auto plan = build_plan(items);
    total = static_cast<int>(plan->ops.size());
    pid_t pid = ::fork();
    if (pid == 0) {
      int renames = 0;
      Disk disk([&](const char* call) {
        // The first rename is the probe of the stage.
        if (std::string_view(call) == "renameat2" && renames++ == keep + 1)
          ::kill(::getpid(), SIGKILL);
        return 0;
      });
      (void)transact(site.ground(&disk), items, CommitMeta{});
      ::_exit(0);
    }
    int status = 0;
    ::waitpid(pid, &status, 0);
    auto report = recover(site.ground());
    REQUIRE(report);
    CHECK(report->left.empty());
    CHECK(tree(site.ws) == tree(site.draft));
    site.check_clean();
  }
}

TEST_CASE("another file system beneath the workspace has its own stage") {
  if (::geteuid() != 0) return;
  Site site;
  put(site.ws + "/here", "old");
  std::filesystem::create_directory(site.ws + "/mnt");
  pid_t pid = ::fork();
  if (pid == 0) {
    if (::unshare(CLONE_NEWNS) != 0 ||
        ::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
        ::mount("none", (site.ws + "/mnt").c_str(), "tmpfs", 0, "size=1m") != 0)
      ::_exit(77);
    // Descriptors of before see the mounts of before.
    site.root = open_dir(site.ws);
    site.state = open_dir(site.state_path);
    site.store_dir = open_dir(site.top + "/objects");
    site.store.emplace(
        std::move(*snapshot::ObjectStore::open(site.store_dir.get())));
    put(site.ws + "/mnt/there", "old");
    put(site.ws + "/mnt/sub/gone", "old");
    site.branch();
    put(site.draft + "/here", "new");
    put(site.draft + "/mnt/there", "new");
    put(site.draft + "/mnt/more/x", "new");
    std::filesystem::remove_all(site.draft + "/mnt/sub");
    auto result = site.commit();
    if (!result) {
      std::fprintf(stderr, "%s\n", result.error().text().c_str());
      ::_exit(1);
    }
    if (tree(site.ws) != tree(site.draft)) ::_exit(2);
    // A rename from one to the other cannot be one step: refused, by name.
    std::filesystem::rename(site.draft + "/here", site.draft + "/mnt/here");
    auto refused = site.commit({{"mnt/here", "here"}});
    if (refused || refused.error().code() != Code::kUnsupported) ::_exit(3);
    if (get(site.ws + "/here") != "new") ::_exit(4);
    ::_exit(0);
  }
  int status = 0;
  ::waitpid(pid, &status, 0);
  CHECK((status == 0 || WEXITSTATUS(status) == 77));
  site.check_clean();
}

TEST_CASE("the stage stands in the workspace when the state is elsewhere") {
  Site site("/dev/shm");
  Site elsewhere("/tmp");
  put(site.ws + "/a", "old");
  site.branch();
  put(site.draft + "/a", "new");
  put(site.draft + "/d/b", "new");
  Ground ground = site.ground();
  ground.state = elsewhere.state.get();
  bool seen = false;
  Disk disk([&](const char* call) {
    if (std::string_view(call) == "renameat2")
      for (const auto& entry : std::filesystem::directory_iterator(site.ws))
        if (entry.path().filename().string().starts_with(".stoplog-")) {
          struct stat st{};
          ::stat(entry.path().c_str(), &st);
          seen = (st.st_mode & 07777) == 0700;
        }
    return 0;
  });
  ground.disk = &disk;
  REQUIRE(transact(ground, site.items(), CommitMeta{}));
  CHECK(seen);
  CHECK(tree(site.ws) == tree(site.draft));
  site.check_clean();
}
