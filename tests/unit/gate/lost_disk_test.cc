// SPDX-License-Identifier: Apache-2.0
// An interrupted commit that worked on two file systems, and one of them is not
// there when it is to be recovered: it is waited for, or given up.
#include <sched.h>
#include <sys/mount.h>

#include "gate/commits.h"
#include "tree_fixture.h"

using namespace stoplog;
using namespace stoplog::gate;
using namespace stoplog::gate::test;
namespace stdfs = std::filesystem;

namespace {

constexpr int kNoMounts = 77, kLived = 78;

// A commit with a file on a tmpfs at ws/mnt and one beside it died after its
// first step, or after `steps`, in a namespace of its own; `body` says what is
// wrong, or 0.
int with_half_on_a_mount(
    const std::function<int(Site&, const std::string&)>& body, int steps = 1) {
  if (::geteuid() != 0) return kNoMounts;
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
    die_after(site, steps + 1);  // there are two probes
    if (get(mnt + "/there") != "new") ::_exit(1);
    if (get(site.ws + "/z") != (steps == 2 ? "new" : "old")) ::_exit(1);
    ::_exit(body(site, mnt));
  }
  int status = 0;
  ::waitpid(pid, &status, 0);
  REQUIRE(WIFEXITED(status));
  int wrong = WEXITSTATUS(status);
  if (wrong != kNoMounts && wrong != kLived) CHECK(wrong == 0);
  return wrong;
}

bool move_mount(const std::string& from, const std::string& to) {
  return ::mount(from.c_str(), to.c_str(), nullptr, MS_MOVE, nullptr) == 0;
}

// Both what to mount and what to give up are named.
bool is_waiting(Site& site) {
  auto waits = recover(site.ground());
  return !waits && waits.error().code() == Code::kUnsupported &&
         waits.error().hint().find("mnt") != std::string::npos &&
         waits.error().hint().find("--give-up") != std::string::npos;
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

namespace {

// In the stage on the file system that came back.
std::string staged_there(const std::string& mnt) {
  std::string all;
  for (const auto& entry : stdfs::directory_iterator(mnt))
    if (entry.path().filename().string().starts_with(".stoplog-"))
      for (const auto& file : stdfs::directory_iterator(entry.path()))
        all += get(file.path());
  return all;
}

// What is here is as before, what is not is named with the place of its other
// content, and the workspace is free for the next commit.
int check_given_up(Site& site, const Result<RecoverReport>& report) {
  if (!report || report->what != RecoverReport::What::kGivenUp) return 30;
  if (get(site.ws + "/z") != "old") return 31;
  if (report->left.size() != 1) return 32;
  std::string text = report->text();
  if (text.find("mnt/there") == std::string::npos) return 33;
  if (text.find("mnt/.stoplog-") == std::string::npos) return 34;
  auto again = recover(site.ground());
  if (!again || again->what != RecoverReport::What::kNothing) return 35;
  if (!stdfs::is_empty(site.state_path + "/pending")) return 36;
  if (!list_commits(site.state.get())->empty()) return 37;
  return 0;
}

}  // namespace

TEST_CASE("a commit whose disk is gone for good is given up") {
  for (int steps : {1, 2})
    with_half_on_a_mount(
        [](Site& site, const std::string& mnt) {
          std::string away = site.top + "/away";
          stdfs::create_directory(away);
          if (!move_mount(mnt, away)) return 2;
          if (!is_waiting(site)) return 3;
          auto report = give_up(site.ground());
          if (int wrong = check_given_up(site, report)) return wrong;
          // One works on.
          site.branch();
          put(site.draft + "/z", "newer");
          if (!site.commit() || get(site.ws + "/z") != "newer") return 4;
          // And it came back after all: both contents are on it.
          if (!move_mount(away, mnt)) return 5;
          if (get(mnt + "/there") != "new") return 6;
          return staged_there(mnt) == "old" ? 0 : 7;
        },
        steps);
}

TEST_CASE("giving up touches nothing on another disk in that place") {
  with_half_on_a_mount([](Site& site, const std::string& mnt) {
    if (sys::statat(AT_FDCWD, mnt)->btime.tv_sec == 0) return kNoMounts;
    if (::umount2(mnt.c_str(), MNT_DETACH) != 0) return 2;
    if (::mount("none", mnt.c_str(), "tmpfs", 0, "size=1m") != 0) return 3;
    put(mnt + "/there", "other");
    auto before = tree(mnt);
    if (int wrong = check_given_up(site, give_up(site.ground()))) return wrong;
    return tree(mnt) == before ? 0 : 4;
  });
}

TEST_CASE("what can be completed is not given up") {
  with_half_on_a_mount([](Site& site, const std::string&) {
    auto report = give_up(site.ground());
    if (!report || report->what != RecoverReport::What::kForward) return 2;
    report = give_up(site.ground());
    if (!report || report->what != RecoverReport::What::kNothing) return 3;
    return tree(site.ws) == tree(site.draft) ? 0 : 4;
  });
}

TEST_CASE("SIGKILL at every system call of giving up leaves it to be done") {
  int end = 0;
  for (int k = 1; end == 0; ++k) {
    INFO("call " << k);
    end = with_half_on_a_mount(
        [&](Site& site, const std::string& mnt) {
          if (::umount2(mnt.c_str(), MNT_DETACH) != 0) return 2;
          bool lived = survives(
              k, [&](const Disk& disk) { (void)give_up(site.ground(&disk)); });
          if (!give_up(site.ground())) return 3;
          if (get(site.ws + "/z") != "old") return 4;
          if (!stdfs::is_empty(site.state_path + "/pending")) return 5;
          return lived ? kLived : 0;
        },
        2);
  }
  CHECK((end == kLived || end == kNoMounts));
}
