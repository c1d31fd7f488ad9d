// SPDX-License-Identifier: Apache-2.0
#include "draft/freeze.h"

#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <functional>

#include "base/sys_file.h"
#include "base/sys_process.h"
#include "catch_shim.h"
#include "jail/proc_tree.h"

using namespace stoplog;
using namespace stoplog::draft;

namespace {

char state_of(pid_t pid) {
  std::ifstream in("/proc/" + std::to_string(pid) + "/stat");
  std::string text((std::istreambuf_iterator<char>(in)), {});
  const size_t at = text.rfind(") ");
  return at == std::string::npos ? 0 : text[at + 2];
}

void eventually(const std::function<bool()>& so) {
  bool done = so();
  for (int i = 0; i < 6000 && !done; ++i) {
    ::usleep(10000);
    done = so();
  }
  REQUIRE(done);
}

// A process that waits, with children that wait; all die with the test.
struct Family {
  explicit Family(int children) {
    pid = ::fork();
    if (pid == 0) {
      for (int i = 0; i < children; ++i)
        if (::fork() == 0) break;
      for (;;) ::pause();
    }
    fd = sys::pidfd_open(pid).value();
    eventually([&] {
      return jail::descendants(pid).size() == static_cast<size_t>(children);
    });
  }
  ~Family() {
    for (pid_t child : jail::descendants(pid))
      if (auto one = sys::pidfd_open(child))
        (void)sys::pidfd_send_signal(one->get(), SIGKILL);
    (void)sys::pidfd_send_signal(fd.get(), SIGKILL);
    ::waitpid(pid, nullptr, 0);
  }
  FreezeTarget target() const { return {.init = pid, .pidfd = fd.get()}; }
  pid_t pid = -1;
  Fd fd;
};

// A group of version 2, wherever that hierarchy is; "" where we may not.
std::string make_group() {
  for (const char* top : {"/sys/fs/cgroup", "/sys/fs/cgroup/unified"}) {
    const std::string path =
        std::string(top) + "/test-freeze-" + std::to_string(::getpid());
    if (::access((std::string(top) + "/cgroup.procs").c_str(), F_OK) == 0 &&
        ::mkdir(path.c_str(), 0755) == 0)
      return path;
  }
  return "";
}

}  // namespace

TEST_CASE("a stopped command stands still and goes on afterwards") {
  Family family(3);
  const std::vector<pid_t> children = jail::descendants(family.pid);
  {
    auto frozen = Frozen::stop(family.target());
    REQUIRE(frozen);
    CHECK(frozen->pids().size() == 3);
    for (pid_t pid : children) CHECK(state_of(pid) == 'T');
    eventually([&] { return state_of(family.pid) == 'T'; });
  }
  eventually([&] {
    for (pid_t pid : children)
      if (state_of(pid) == 'T') return false;
    return state_of(family.pid) != 'T';
  });
}

TEST_CASE("a process that was stopped before stays stopped") {
  Family family(2);
  const pid_t child = jail::descendants(family.pid).front();
  REQUIRE(::kill(child, SIGSTOP) == 0);
  eventually([&] { return state_of(child) == 'T'; });
  {
    auto frozen = Frozen::stop(family.target());
    REQUIRE(frozen);
  }
  eventually([&] { return state_of(family.pid) != 'T'; });
  CHECK(state_of(child) == 'T');
}

TEST_CASE("only a descendant is opened by its number") {
  Family family(1), strangers(1);
  const pid_t child = jail::descendants(family.pid).front();
  CHECK(jail::open_descendant(child, family.pid).has_value());
  const pid_t other = jail::descendants(strangers.pid).front();
  CHECK(jail::open_descendant(other, family.pid).error().err() == ESRCH);
  CHECK(jail::open_descendant(strangers.pid, family.pid).error().err() ==
        ESRCH);
  // init is stopped by the pidfd that its maker has.
  CHECK(jail::open_descendant(family.pid, family.pid).error().err() == ESRCH);
  CHECK(jail::open_descendant(::getpid(), family.pid).error().err() == ESRCH);
  REQUIRE(::kill(child, SIGKILL) == 0);
  // A zombie of its parent's is still one; nobody else has the number.
  eventually([&] { return state_of(child) == 'Z'; });
  CHECK(jail::open_descendant(child, family.pid).has_value());
}

TEST_CASE("a command that has ended cannot be stopped") {
  FreezeTarget target;
  Fd fd;
  {
    Family family(0);
    fd = sys::dup(family.fd.get()).value();
    target = {.init = family.pid, .pidfd = fd.get()};
  }
  CHECK(Frozen::stop(target).error().err() == ESRCH);
}

TEST_CASE("a group of version 2 is frozen as a whole and can be killed so") {
  const std::string path = make_group();
  if (path.empty()) {
    WARN("no group of version 2 may be made here");
    return;
  }
  {
    Family family(2);
    auto move = [&](pid_t pid) {
      std::ofstream(path + "/cgroup.procs") << pid;
    };
    for (pid_t pid : jail::descendants(family.pid)) move(pid);
    move(family.pid);
    Fd group = sys::openat(AT_FDCWD, path, O_RDONLY | O_DIRECTORY).value();
    auto is_frozen = [&] {
      auto text = sys::read_file(group.get(), "cgroup.events", 4096);
      return text && text->find("frozen 1") != std::string::npos;
    };
    FreezeTarget target = family.target();
    target.group = group.get();
    {
      auto frozen = Frozen::stop(target);
      REQUIRE(frozen);
      CHECK(frozen->pids().size() == 2);
      CHECK(is_frozen());
      // Not by signals: nobody is stopped.
      for (pid_t pid : frozen->pids()) CHECK(state_of(pid) != 'T');
    }
    eventually([&] { return !is_frozen(); });
    auto frozen = Frozen::stop(target);
    REQUIRE(frozen);
    const pid_t child = frozen->pids().front();
    REQUIRE(::kill(child, SIGKILL) == 0);
    eventually([&] { return state_of(child) == 'Z' || state_of(child) == 0; });
  }
  eventually([&] { return ::rmdir(path.c_str()) == 0; });
}
