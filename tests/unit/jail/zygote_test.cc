// SPDX-License-Identifier: Apache-2.0
// Real jails over a scratch directory. Zygote::start() forks, so threads are
// started only after it.
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <future>
#include <thread>

#include "base/sys_file.h"
#include "base/sys_process.h"
#include "catch_shim.h"
#include "jail/cgroup.h"
#include "jail/proc_tree.h"
#include "jail/supervise.h"
#include "jail/zygote.h"

using namespace stoplog;
using namespace stoplog::jail;
using std::chrono::milliseconds;

namespace {

// A workspace that the jail's user owns, gone with the object.
class Scratch {
 public:
  Scratch() {
    char name[] = "/tmp/stoplog-zygote.XXXXXX";
    REQUIRE(::mkdtemp(name) != nullptr);
    path_ = name;
    REQUIRE(::chmod(name, 0777) == 0);
  }
  ~Scratch() {
    (void)::unlink((path_ + "/file").c_str());
    (void)::unlink((path_ + "/note").c_str());
    (void)::rmdir(path_.c_str());
  }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

JailSpec spec_over(const Scratch& scratch) {
  JailSpec spec;
  Identity& id = spec.identity;
  id.host_uid = id.uid = ::getuid();
  id.host_gid = id.gid = ::getgid();
  if (::getuid() == 0) {
    id.host_uid = id.host_gid = 65533;
    id.uid = id.gid = 1000;
  }
  spec.workspace = "/home/user/w";
  spec.workspace_tree.path = scratch.path();
  spec.home = "/home/user";
  return spec;
}

CommandSpec shell(const std::string& script) {
  CommandSpec command;
  command.argv = {"/bin/sh", "-c", script};
  command.env = {"PATH=/usr/bin:/bin"};
  command.cwd = "/home/user/w";
  return command;
}

struct Ran {
  Outcome outcome;
  std::string output;
};

Ran run(Zygote& zygote, const CommandSpec& command) {
  auto pipe = sys::pipe();
  REQUIRE(pipe);
  auto null = sys::openat(AT_FDCWD, "/dev/null", O_RDWR);
  REQUIRE(null);
  auto running = zygote.spawn(
      command, {null->get(), pipe->write.get(), pipe->write.get()});
  if (!running) FAIL(running.error().text());
  pipe->write.reset();
  Ran ran;
  ran.outcome = supervise(**running, {});
  if (auto text = sys::read_all(pipe->read.get(), 1 << 20)) ran.output = *text;
  return ran;
}

bool no_jails() {
  Scratch scratch;
  auto zygote = Zygote::start(spec_over(scratch));
  if (zygote && zygote->wait_ready()) return false;
  WARN("no jail on this machine");
  return true;
}

}  // namespace

TEST_CASE("a command runs and its end is told") {
  if (no_jails()) return;
  Scratch scratch;
  auto zygote = Zygote::start(spec_over(scratch));
  REQUIRE(zygote);
  const Ran ran = run(*zygote, shell("echo hello; echo x >file; exit 3"));
  CHECK(ran.outcome.exit == 3);
  CHECK(ran.output == "hello\n");
  CHECK(::access((scratch.path() + "/file").c_str(), F_OK) == 0);
  CHECK(run(*zygote, shell("kill -9 $$")).outcome.signal == SIGKILL);
  CommandSpec absent = shell("");
  absent.argv = {"/no/such/thing"};
  const Ran none = run(*zygote, absent);
  CHECK(none.outcome.exit == 127);
  CHECK(none.outcome.not_run.has_value());
}

TEST_CASE("many commands of one jail run at the same time") {
  if (no_jails()) return;
  Scratch scratch;
  auto zygote = Zygote::start(spec_over(scratch));
  REQUIRE(zygote);
  std::vector<std::future<Ran>> all;
  for (int i = 0; i < 8; ++i)
    all.push_back(std::async(std::launch::async, [&, i] {
      return run(*zygote, shell(fmt::format("sleep 0.1; exit {}", i)));
    }));
  for (size_t i = 0; i < all.size(); ++i)
    CHECK(all[i].get().outcome.exit == static_cast<int>(i));
}

TEST_CASE("a command can be ended and signalled from another thread") {
  if (no_jails()) return;
  Scratch scratch;
  auto zygote = Zygote::start(spec_over(scratch));
  REQUIRE(zygote);
  auto null = sys::openat(AT_FDCWD, "/dev/null", O_RDWR);
  REQUIRE(null);
  const Stdio nowhere{null->get(), null->get(), null->get()};

  auto killed = zygote->spawn(shell("sleep 100"), nowhere);
  REQUIRE(killed);
  std::thread killer([&] { (*killed)->kill(KillReason::kOutput, 5, 6); });
  Outcome outcome = supervise(**killed, {});
  killer.join();
  CHECK(outcome.killed_by == KillReason::kOutput);
  CHECK(outcome.limit == 5);
  CHECK(outcome.measured == 6);
  CHECK(outcome.exit == 124);

  auto told = zygote->spawn(
      shell("trap 'exit 9' USR1; echo >file; while :; do sleep 0.01; done"),
      nowhere);
  REQUIRE(told);
  std::thread teller([&] {
    while (::access((scratch.path() + "/file").c_str(), F_OK) != 0)
      std::this_thread::sleep_for(milliseconds(5));
    CHECK((*told)->signal(SIGUSR1).has_value());
  });
  outcome = supervise(**told, {});
  teller.join();
  CHECK(outcome.exit == 9);
}

TEST_CASE("a stop and its end are reported") {
  if (no_jails()) return;
  Scratch scratch;
  auto zygote = Zygote::start(spec_over(scratch));
  REQUIRE(zygote);
  auto null = sys::openat(AT_FDCWD, "/dev/null", O_RDWR);
  REQUIRE(null);
  auto running = zygote->spawn(shell("kill -STOP $$; exit 4"),
                               {null->get(), null->get(), null->get()});
  REQUIRE(running);
  std::vector<int> seen;
  const Outcome outcome = supervise(**running, {.on_stop = [&](int number) {
    seen.push_back(number);
    if (number != 0) (void)(*running)->signal(SIGCONT);
  }});
  CHECK(outcome.exit == 4);
  REQUIRE_FALSE(seen.empty());
  CHECK(seen.front() == SIGSTOP);
}

TEST_CASE("when the client hangs up its command is killed") {
  if (no_jails()) return;
  Scratch scratch;
  auto zygote = Zygote::start(spec_over(scratch));
  REQUIRE(zygote);
  auto null = sys::openat(AT_FDCWD, "/dev/null", O_RDWR);
  auto pipe = sys::pipe();
  REQUIRE(pipe);
  auto running = zygote->spawn(shell("sleep 100"),
                               {null->get(), null->get(), null->get()});
  REQUIRE(running);
  pipe->write.reset();
  const Outcome outcome = supervise(**running, {.client = pipe->read.get()});
  CHECK(outcome.killed_by == KillReason::kSupervisor);
}

TEST_CASE("notes are read inside and never written there") {
  if (no_jails()) return;
  Scratch scratch, notes;
  {
    auto file =
        sys::openat(AT_FDCWD, notes.path() + "/note", O_WRONLY | O_CREAT, 0644);
    REQUIRE(file);
    REQUIRE(sys::write_full(file->get(), "old"));
  }
  JailSpec spec = spec_over(scratch);
  spec.notes_dir = notes.path();
  auto zygote = Zygote::start(spec);
  REQUIRE(zygote);
  REQUIRE(zygote->write_note("later", "new"));
  CHECK(zygote->write_note("later", std::string(100000, 'x')).has_value());
  REQUIRE(zygote->write_note("later", "new"));
  const Ran ran = run(
      *zygote, shell("cat /run/stoplog/note /run/stoplog/later; "
                     "(echo x >/run/stoplog/note) 2>/dev/null || echo kept; "
                     "grep -c " +
                     notes.path() + " /proc/self/mountinfo"));
  CHECK(ran.output == "oldnewkept\n0\n");
}

TEST_CASE("an enormous command line arrives whole") {
  if (no_jails()) return;
  Scratch scratch;
  auto zygote = Zygote::start(spec_over(scratch));
  REQUIRE(zygote);
  CommandSpec command = shell("echo $# ${#1}");
  command.argv.push_back("x");
  for (int i = 0; i < 10; ++i) command.argv.emplace_back(100000, 'y');
  CHECK(run(*zygote, command).output == "10 100000\n");
  command.argv.assign(3, std::string(200000, 'z'));
  command.argv[0] = "/bin/echo";
  const Ran refused = run(*zygote, command);
  CHECK(refused.outcome.exit == 126);  // E2BIG: one string may have 128 KiB
}

TEST_CASE("a jail that refuses or is never used leaves no control group") {
  if (no_jails()) return;
  const std::string own = fmt::format("stoplog-{}-", process_mark(::getpid()));
  const CgroupPlaces places = find_cgroups();
  auto groups = [&] {
    size_t count = 0;
    for (const std::string& parent : places.v1) {
      DIR* dir = parent.empty() ? nullptr : ::opendir(parent.c_str());
      while (const dirent* entry = dir != nullptr ? ::readdir(dir) : nullptr)
        if (std::string_view(entry->d_name).starts_with(own)) ++count;
      if (dir != nullptr) ::closedir(dir);
    }
    return count;
  };
  Scratch scratch;
  {
    auto idle = Zygote::start(spec_over(scratch));
    REQUIRE(idle);
    (void)run(*idle, shell("true"));
    idle->prepare_next();
    REQUIRE(idle->open_pty());  // the next init is there
    CgroupSet trial = CgroupSet::create(
        places, fmt::format("stoplog-test-{}-trial", ::getpid()));
    if (trial.version() == 1) CHECK(groups() > 0);
  }
  CHECK(groups() == 0);
  JailSpec spec = spec_over(scratch);
  spec.test_fail.add(Wall::kLandlock);
  auto refusing = Zygote::start(spec);
  REQUIRE(refusing);
  auto null = sys::openat(AT_FDCWD, "/dev/null", O_RDWR);
  CHECK_FALSE(
      refusing->spawn(shell("true"), {null->get(), null->get(), null->get()}));
  CHECK(groups() == 0);
}

TEST_CASE("a jail of host root is refused") {
  Scratch scratch;
  JailSpec spec = spec_over(scratch);
  spec.identity.host_uid = 0;
  CHECK_FALSE(Zygote::start(spec).has_value());
}
