// SPDX-License-Identifier: Apache-2.0
// The thin wrappers: descriptors, memfds, attributes by O_PATH, inotify,
// terminals; and, in a child of their own, mounts, Landlock and privileges.
#include <fcntl.h>
#include <linux/mount.h>
#include <pty.h>
#include <sched.h>
#include <signal.h>
#include <sys/inotify.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <functional>

#include "base/memfd.h"
#include "base/sys_attr.h"
#include "base/sys_inotify.h"
#include "base/sys_landlock.h"
#include "base/sys_mount.h"
#include "base/sys_namespace.h"
#include "base/sys_node.h"
#include "base/sys_privilege.h"
#include "base/sys_terminal.h"
#include "catch_shim.h"
#include "scratch.h"

using namespace stoplog;

namespace {

bool is_open(int fd) { return ::fcntl(fd, F_GETFD) >= 0; }

// The first step that did not hold, counted from 1; 0: all did.
int in_child(const std::function<int()>& steps) {
  pid_t pid = ::fork();
  if (pid == 0) ::_exit(steps());
  int status = 0;
  REQUIRE(::waitpid(pid, &status, 0) == pid);
  REQUIRE(WIFEXITED(status));
  return WEXITSTATUS(status);
}

// Root of a user namespace of its own, whoever runs the test.
bool enter_namespaces() {
  uid_t uid = ::geteuid();
  gid_t gid = ::getegid();
  return ::unshare(CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWUTS) == 0 &&
         sys::write_id_maps(::getpid(), {.inside = 0, .outside = uid},
                            {.inside = 0, .outside = gid}, true)
             .has_value();
}

}  // namespace

TEST_CASE("an Fd closes what it owns and once") {
  Fd a(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  int number = a.get();
  Fd b = std::move(a);
  CHECK(b.get() == number);
  CHECK(is_open(number));
  b = Fd();
  CHECK_FALSE(is_open(number));
  Fd c(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  int given = c.release();
  c.reset();
  CHECK(is_open(given));
  ::close(given);
}

TEST_CASE("a sealed memfd has its content for good") {
  Fd sealed = sealed_memfd("test", "content").value();
  CHECK(read_sealed_memfd(sealed.get(), 100).value() == "content");
  CHECK(::write(sealed.get(), "x", 1) < 0);
  CHECK(::ftruncate(sealed.get(), 0) < 0);
  CHECK(read_sealed_memfd(sealed.get(), 3).error().err() == EFBIG);
  Scratch scratch;
  Fd plain = sys::openat(scratch.fd(), "plain", O_RDWR | O_CREAT, 0600).value();
  CHECK(read_sealed_memfd(plain.get(), 100).error().err() == EPERM);
}

TEST_CASE("attributes are set and read through an O_PATH descriptor") {
  Scratch scratch;
  REQUIRE(sys::openat(scratch.fd(), "file", O_RDWR | O_CREAT, 0600));
  REQUIRE(::symlinkat("target", scratch.fd(), "link") == 0);
  Fd file = sys::openat(scratch.fd(), "file", O_PATH).value();
  Fd link = sys::openat(scratch.fd(), "link", O_PATH | O_NOFOLLOW).value();
  REQUIRE(sys::path_chmod(file.get(), 0640));
  REQUIRE(sys::path_chown(file.get(), static_cast<uid_t>(-1),
                          static_cast<gid_t>(-1)));
  REQUIRE(sys::path_set_mtime(file.get(), {1234, 5}));
  REQUIRE(sys::path_set_mtime(link.get(), {99, 0}));
  CHECK((sys::fstat(file.get())->mode & 07777) == 0640);
  CHECK(sys::fstat(file.get())->mtime.tv_sec == 1234);
  CHECK(sys::fstat(link.get())->mtime.tv_sec == 99);
  CHECK(sys::path_readlink(link.get()).value() == "target");
  if (Status set = sys::path_setxattr(file.get(), "user.x", "value"); set) {
    CHECK(sys::path_getxattr(file.get(), "user.x").value() == "value");
    auto names = sys::path_listxattr(file.get()).value();
    CHECK(std::ranges::find(names, "user.x") != names.end());
    REQUIRE(sys::path_removexattr(file.get(), "user.x"));
  } else {
    CHECK(set.error().err() == EOPNOTSUPP);  // of the file system beneath
  }
  CHECK(sys::path_getxattr(file.get(), "user.x").error().err() == ENODATA);
  std::vector<std::string> seen;
  REQUIRE(
      sys::list_dir(scratch.fd(), [&](std::string_view name, unsigned char,
                                      uint64_t) { seen.emplace_back(name); }));
  std::ranges::sort(seen);
  CHECK(seen == std::vector<std::string>{"file", "link"});
}

TEST_CASE("inotify tells the name of what came") {
  Scratch scratch;
  Fd inotify = sys::inotify_open().value();
  int watch =
      sys::inotify_watch(inotify.get(), scratch.fd(), IN_CREATE).value();
  CHECK(sys::inotify_read(inotify.get()).value().empty());
  REQUIRE(sys::openat(scratch.fd(), "new", O_RDWR | O_CREAT, 0600));
  auto events = sys::inotify_read(inotify.get()).value();
  REQUIRE(events.size() == 1);
  CHECK(events[0].watch == watch);
  CHECK(events[0].name == "new");
  REQUIRE(sys::inotify_unwatch(inotify.get(), watch));
  CHECK(sys::inotify_max_watches().value() > 0);
}

TEST_CASE("a terminal is known and its settings come back") {
  int master = -1, slave = -1;
  winsize size{.ws_row = 33, .ws_col = 101, .ws_xpixel = 0, .ws_ypixel = 0};
  REQUIRE(::openpty(&master, &slave, nullptr, nullptr, &size) == 0);
  Fd ours(master), theirs(slave);
  CHECK(sys::is_terminal(slave));
  CHECK(sys::window_size(slave)->columns == 101);
  CHECK(sys::window_size(slave)->rows == 33);
  sys::TerminalState state = sys::TerminalState::take(slave);
  termios raw{};
  REQUIRE(::tcgetattr(slave, &raw) == 0);
  ::cfmakeraw(&raw);
  REQUIRE(::tcsetattr(slave, TCSANOW, &raw) == 0);
  state.put_back();
  REQUIRE(::tcgetattr(slave, &raw) == 0);
  CHECK((raw.c_lflag & ICANON) != 0);
  Fd null = sys::openat(AT_FDCWD, "/dev/null", O_RDWR).value();
  CHECK_FALSE(sys::is_terminal(null.get()));
  CHECK_FALSE(sys::window_size(null.get()));
}

TEST_CASE("signals and events wait to be taken") {
  {
    auto watch = sys::SignalWatch::start({SIGUSR1}).value();
    CHECK(watch.take() == 0);
    ::raise(SIGUSR1);
    pollfd ready{watch.fd(), POLLIN, 0};
    CHECK(sys::wait_any({&ready, 1}, 1000).value() == 1);
    CHECK(watch.take() == SIGUSR1);
    CHECK(watch.take() == 0);
  }
  Fd event = sys::event_fd().value();
  pollfd ready{event.get(), POLLIN, 0};
  CHECK(sys::wait_any({&ready, 1}, 0).value() == 0);
  sys::raise_event(event.get());
  CHECK(sys::wait_any({&ready, 1}, 0).value() == 1);
  sys::drain_event(event.get());
  CHECK(sys::wait_any({&ready, 1}, 0).value() == 0);
}

TEST_CASE("a new mount is attached and made read-only in a namespace") {
  Scratch scratch;
  CHECK(in_child([&]() -> int {
          if (!enter_namespaces()) return 1;
          if (!sys::make_mounts_private()) return 2;
          auto tmpfs = sys::new_mount("tmpfs", {}, MOUNT_ATTR_NOSUID);
          if (!tmpfs) return 3;
          if (!sys::openat(tmpfs->get(), "in", O_RDWR | O_CREAT, 0600))
            return 4;
          if (!sys::add_mount_attributes(tmpfs->get(), MOUNT_ATTR_RDONLY,
                                         sys::Depth::kOne))
            return 5;
          // Opened here: the other one is of the namespace outside.
          auto place = sys::openat(AT_FDCWD, scratch.path(), O_PATH);
          if (!place || !sys::attach_mount(tmpfs->get(), place->get()))
            return 6;
          std::string made = scratch.path() + "/in";
          if (::access(made.c_str(), R_OK) != 0) return 7;
          if (::open(made.c_str(), O_RDWR | O_CLOEXEC) >= 0 || errno != EROFS)
            return 8;
          return sys::set_host_name("tested") ? 0 : 9;
        }) == 0);
  // Nobody else sees it.
  CHECK_FALSE(sys::statat(scratch.fd(), "in"));
}

TEST_CASE("Landlock denies what was not allowed") {
  if (sys::landlock_abi() == 0) {
    CHECK_FALSE(sys::landlock_create({.fs = sys::kLandlockReadFile}));
    return;
  }
  Scratch scratch;
  REQUIRE(sys::openat(scratch.fd(), "file", O_RDWR | O_CREAT, 0600));
  CHECK(in_child([&]() -> int {
          auto rules = sys::landlock_create(
              {.fs = sys::kLandlockReadFile | sys::kLandlockWriteFile});
          if (!rules) return 1;
          if (!sys::landlock_allow_path(rules->get(), scratch.fd(),
                                        sys::kLandlockReadFile))
            return 2;
          if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return 3;
          if (!sys::landlock_restrict_self(rules->get())) return 4;
          if (!sys::openat(scratch.fd(), "file", O_RDONLY)) return 5;
          auto write = sys::openat(scratch.fd(), "file", O_WRONLY);
          return !write && write.error().err() == EACCES ? 0 : 6;
        }) == 0);
}

TEST_CASE("privileges that were given up are gone") {
  CHECK(in_child([]() -> int {
          if (!enter_namespaces()) return 1;
          if (!sys::drop_bounding_set()) return 2;
          if (!sys::lock_securebits()) return 3;
          if (!sys::set_capabilities(0)) return 4;
          if (::prctl(PR_CAPBSET_READ, 21, 0, 0, 0) != 0) return 5;
          return sys::make_mounts_private() ? 6 : 0;
        }) == 0);
}
