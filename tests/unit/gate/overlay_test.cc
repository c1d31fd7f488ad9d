// SPDX-License-Identifier: Apache-2.0
// A workspace on an overlay of two file systems: a file has the number of the
// layer that it comes from, a directory that of the overlay.
#include <sched.h>
#include <sys/mount.h>

#include "gate/commits.h"
#include "tree_fixture.h"

using namespace stoplog;
using namespace stoplog::gate;
using namespace stoplog::gate::test;
namespace stdfs = std::filesystem;

namespace {

enum Outcome { kDone = 0, kOld = 1, kNew = 2, kNoOverlay = 77 };

void make_base(const std::string& dir) {
  for (const char* name : {"edit", "gone", "move", "twice"})
    put(dir + "/" + name, std::string("old ") + name);
  put(dir + "/dir/a", "a");
  put(dir + "/olddir/x", "x");
}

void make_changes(const std::string& dir) {
  put(dir + "/edit", "new edit");
  put(dir + "/twice", "new twice", 0600);
  stdfs::remove(dir + "/gone");
  stdfs::rename(dir + "/move", dir + "/dir/moved");
  stdfs::remove_all(dir + "/olddir");
  put(dir + "/new/deep/file", "made");
  put(dir + "/made", "made");
}

// In a namespace of its own: the commit dies at its k-th call, and is
// recovered.
int die_and_recover(Site& site, int k) {
  std::string low = site.top + "/low", up = site.top + "/up";
  for (const std::string& dir : {low, up}) stdfs::create_directory(dir);
  std::string options = "xino=off,lowerdir=" + low + ",upperdir=" + up +
                        "/upper,workdir=" + up + "/work";
  if (::unshare(CLONE_NEWNS) != 0 ||
      ::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
      ::mount("none", low.c_str(), "tmpfs", 0, "size=1m") != 0 ||
      ::mount("none", up.c_str(), "tmpfs", 0, "size=1m") != 0)
    return kNoOverlay;
  make_base(low);
  for (const char* name : {"/upper", "/work"})
    stdfs::create_directory(up + name);
  if (::mount("overlay", site.ws.c_str(), "overlay", 0, options.c_str()) != 0)
    return kNoOverlay;
  // Descriptors of before see the mounts of before.
  site.root = open_dir(site.ws);
  site.branch();
  make_changes(site.draft);
  auto items = site.items({{"dir/moved", "move"}});
  auto old_tree = tree(site.ws), new_tree = tree(site.draft);
  bool alive = survives(k, [&](const Disk& disk) {
    (void)transact(site.ground(&disk), items, CommitMeta{});
  });
  auto report = recover(site.ground());
  if (!report) return 10;
  if (!report->left.empty()) return 11;
  auto now = tree(site.ws);
  if (now != old_tree && now != new_tree) return 12;
  bool is_new = now == new_tree;
  if (list_commits(site.state.get())->size() != (is_new ? 1 : 0)) return 13;
  if (alive) return is_new ? kDone : 14;
  return is_new ? kNew : kOld;
}

}  // namespace

TEST_CASE("SIGKILL on an overlay of two file systems: all old or all new") {
  if (::geteuid() != 0) return;
  std::set<int> seen;
  for (int k = 1; !seen.contains(kDone); ++k) {
    Site site("/dev/shm");
    pid_t pid = ::fork();
    if (pid == 0) ::_exit(die_and_recover(site, k));
    int status = 0;
    REQUIRE(::waitpid(pid, &status, 0) == pid);
    REQUIRE(WIFEXITED(status));
    int outcome = WEXITSTATUS(status);
    if (outcome == kNoOverlay) return;
    INFO("call " << k << ": " << outcome);
    REQUIRE(outcome <= kNew);
    seen.insert(outcome);
    REQUIRE(k < 1000);
  }
  CHECK(seen.contains(kOld));
  CHECK(seen.contains(kNew));
}
