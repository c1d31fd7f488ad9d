// SPDX-License-Identifier: Apache-2.0
// New names of files that stand in the real tree.
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

#include "gate/gate.h"
#include "tree_fixture.h"

using namespace stoplog;
using namespace stoplog::gate;
using namespace stoplog::gate::test;

namespace {

ino_t inode(const std::string& path) {
  struct stat st{};
  return ::lstat(path.c_str(), &st) == 0 ? st.st_ino : 0;
}

// The draft has more names of `a`: a new one, one in a new directory, and one
// where another file stood.
struct Linked : Site {
  explicit Linked(const std::string& where = "/tmp") : Site(where) {
    put(ws + "/a", "text", 0640);
    put(ws + "/over", "other");
    branch();
    REQUIRE(::link((draft + "/a").c_str(), (draft + "/b").c_str()) == 0);
    std::filesystem::create_directory(draft + "/d");
    REQUIRE(::link((draft + "/a").c_str(), (draft + "/d/c").c_str()) == 0);
    ::unlink((draft + "/over").c_str());
    REQUIRE(::link((draft + "/a").c_str(), (draft + "/over").c_str()) == 0);
    put(draft + "/plain", "plain");
  }
};

}  // namespace

TEST_CASE("a new name of a file that is there is a link of it") {
  Linked site;
  ino_t was = inode(site.ws + "/a");
  auto before = tree(site.ws);
  auto record = site.commit();
  REQUIRE(record);
  CHECK(record->warnings.empty());
  CHECK(tree(site.ws) == tree(site.draft));
  for (const char* name : {"/a", "/b", "/d/c", "/over"})
    CHECK(inode(site.ws + name) == was);
  site.check_clean();
  // The file itself has no row of its own in what was done.
  for (const Item& item : record->items)
    CHECK(item.stays() == (item.path.str() == "a"));
  REQUIRE(undo({.ground = site.ground(), .number = {}, .meta = {}}));
  CHECK(tree(site.ws) == before);
  CHECK(inode(site.ws + "/a") == was);
  auto again = undo({.ground = site.ground(), .number = 2, .meta = {}});
  REQUIRE(again);
  CHECK(tree(site.ws) == tree(site.draft));
  CHECK(inode(site.ws + "/d/c") == was);
}

TEST_CASE("the file that a name is to be a link of must be what was seen") {
  Linked site;
  auto items = site.items();
  SECTION("edited") { put(site.ws + "/a", "person", 0640); }
  SECTION("another mode") { ::chmod((site.ws + "/a").c_str(), 0600); }
  SECTION("gone") { ::unlink((site.ws + "/a").c_str()); }
  SECTION("a symlink") {
    ::unlink((site.ws + "/a").c_str());
    std::filesystem::create_symlink("over", site.ws + "/a");
  }
  auto before = tree(site.ws);
  auto result = transact(site.ground(), items, CommitMeta{});
  REQUIRE(!result);
  CHECK(result.error().code() == Code::kDrift);
  CHECK(tree(site.ws) == before);
  site.check_clean();
}

// At every call somebody saves the file, in place or by renaming over it, or
// puts a symlink in its place.
TEST_CASE("a save of the file that gets new names is never lost") {
  enum class Way { kInPlace, kRename, kSymlink };
  for (Way way : {Way::kInPlace, Way::kRename, Way::kSymlink}) {
    int total = 0, last_step = 0;
    {
      Linked site("/dev/shm");
      Disk disk([&](const char* call) {
        ++total;
        if (std::string_view(call) == "renameat2") last_step = total;
        return 0;
      });
      REQUIRE(transact(site.ground(&disk), site.items(), CommitMeta{}));
    }
    for (int k = 1; k <= total; ++k) {
      Linked site("/dev/shm");
      auto items = site.items();
      int n = 0;
      Disk disk([&](const char*) {
        if (++n != k) return 0;
        std::string a = site.ws + "/a";
        if (way == Way::kInPlace) {
          std::ofstream(a, std::ios::binary) << "person";
        } else if (way == Way::kRename) {
          put(site.ws + "/a.tmp", "person");
          ::rename((a + ".tmp").c_str(), a.c_str());
        } else {
          ::unlink(a.c_str());
          std::filesystem::create_symlink("/etc/hostname", a);
        }
        return 0;
      });
      auto result = transact(site.ground(&disk), items, CommitMeta{});
      INFO("way " << static_cast<int>(way) << " call " << k);
      if (way == Way::kSymlink)
        CHECK(std::filesystem::is_symlink(site.ws + "/a"));
      else
        CHECK(get(site.ws + "/a") == "person");
      if (result) {
        // Done before the save, or no more looked at it: what comes before the
        // last step is always seen.
        CHECK(k > last_step);
        CHECK(get(site.ws + "/plain") == "plain");
        CHECK(std::filesystem::exists(site.ws + "/d/c"));
      } else {
        CHECK(result.error().code() == Code::kDrift);
        CHECK(!std::filesystem::exists(site.ws + "/b"));
        CHECK(!std::filesystem::exists(site.ws + "/d"));
        CHECK(!std::filesystem::exists(site.ws + "/plain"));
        CHECK(get(site.ws + "/over") == "other");
      }
      site.check_clean();
    }
  }
}

TEST_CASE("a name that cannot be a link is a file of its own and told") {
  for (int error : {EPERM, EMLINK}) {
    Linked one;
    Disk disk([&](const char* call) {
      return std::string_view(call) == "linkat" ? error : 0;
    });
    auto record = transact(one.ground(&disk), one.items(), CommitMeta{});
    REQUIRE(record);
    CHECK(get(one.ws + "/b") == "text");
    CHECK(inode(one.ws + "/b") != inode(one.ws + "/a"));
    CHECK(record->warnings.size() == 3);
    one.check_clean();
  }
}

TEST_CASE("a mode that was not approved makes a new name a file of its own") {
  Linked site;
  auto items = site.items();
  for (Item& item : items)
    if (item.path.str() == "b") item.fresh->mode = 0600;
  REQUIRE(transact(site.ground(), items, CommitMeta{}));
  CHECK(inode(site.ws + "/b") != inode(site.ws + "/a"));
  CHECK(inode(site.ws + "/over") == inode(site.ws + "/a"));
  struct stat st{};
  ::stat((site.ws + "/a").c_str(), &st);
  CHECK((st.st_mode & 07777) == 0640);
}

TEST_CASE("an edit of a file after a crash is not taken for its new name") {
  Linked site("/dev/shm");
  auto items = site.items();
  pid_t pid = ::fork();
  if (pid == 0) {
    int writes = 0;
    Disk disk([&](const char* call) {
      std::string_view name(call);
      // The intent, the mark of an abort, the record of the switch; then the
      // first step.
      if (name == "create") ++writes;
      if (writes == 3 && name == "renameat2") ::kill(::getpid(), SIGKILL);
      return 0;
    });
    (void)transact(site.ground(&disk), items, CommitMeta{});
    ::_exit(0);
  }
  int status = 0;
  REQUIRE(::waitpid(pid, &status, 0) == pid);
  REQUIRE(WIFSIGNALED(status));
  put(site.ws + "/a", "person", 0640);
  auto report = recover(site.ground());
  REQUIRE(report);
  CHECK(report->what == RecoverReport::What::kForward);
  CHECK(get(site.ws + "/a") == "person");
  CHECK(get(site.ws + "/plain") == "plain");
  CHECK(!std::filesystem::exists(site.ws + "/b"));
  CHECK(get(site.ws + "/over") == "other");
  REQUIRE(report->left.size() == 2);
  CHECK(report->left[0].path.str() == "b");
  CHECK(report->left[1].path.str() == "over");
  site.check_clean();
}
