// SPDX-License-Identifier: Apache-2.0
#include "jail/limits.h"

#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "catch_shim.h"
#include "jail/cgroup.h"
#include "jail/wire.h"

using namespace stoplog;
using namespace stoplog::jail;

TEST_CASE("a limit asked for that nothing can hold refuses the command") {
  CommandSpec command;
  command.limits.cpus = 1.5;
  const LimitMeans poor{.process_rlimit = true};
  REQUIRE(plan_limits(command, poor).has_value());
  CHECK(plan_limits(command, poor)->not_held ==
        std::vector<LimitKind>{LimitKind::kCpus});
  command.required = {LimitKind::kCpus};
  CHECK(plan_limits(command, poor).error().code() == Code::kUnsupported);
}

TEST_CASE("each limit is held by the strongest means there is") {
  CommandSpec command;
  command.limits = {.time = std::chrono::seconds(1),
                    .cpu = std::chrono::seconds(1),
                    .cpus = 1,
                    .memory = 1,
                    .pids = 1,
                    .files = 1,
                    .output = 1};
  const LimitMeans rich{.cgroup_version = 2,
                        .memory = true,
                        .pids = true,
                        .cpu = true,
                        .cpuacct = true};
  Held held = plan_limits(command, rich)->held;
  CHECK(held[LimitKind::kMemory] == Mechanism::kCgroup2);
  CHECK(held[LimitKind::kPids] == Mechanism::kCgroup2);
  CHECK(held[LimitKind::kTime] == Mechanism::kSupervisor);
  CHECK(held[LimitKind::kFiles] == Mechanism::kRlimit);
  held = plan_limits(command, {.process_rlimit = true})->held;
  CHECK(held[LimitKind::kMemory] == Mechanism::kPoll);
  CHECK(held[LimitKind::kPids] == Mechanism::kRlimit);
  CHECK(held[LimitKind::kCpus] == Mechanism::kNone);
  // Before 5.14 RLIMIT_NPROC counts the user's processes everywhere.
  CHECK(plan_limits(command, {})->held[LimitKind::kPids] == Mechanism::kNone);
  command.required = {LimitKind::kPids};
  CHECK(plan_limits(command, {}).error().code() == Code::kUnsupported);
}

TEST_CASE("groups of version 1 are found beneath the own one") {
  const CgroupPlaces places = parse_cgroups(
      "30 1 0:27 / /sys/fs/cgroup rw - tmpfs tmpfs rw\n"
      "31 30 0:28 / /sys/fs/cgroup/cpu,cpuacct rw shared:3 - cgroup cgroup "
      "rw,cpu,cpuacct\n"
      "32 30 0:29 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n"
      "33 30 0:30 /outer /sys/fs/cgroup/pids rw - cgroup cgroup rw,pids\n",
      "4:cpu,cpuacct:/\n3:memory:/a/b\n2:pids:/outer/own\n");
  CHECK(places.v1[0] == "/sys/fs/cgroup/memory/a/b");
  CHECK(places.v1[1] == "/sys/fs/cgroup/pids/own");
  CHECK(places.v1[2] == "/sys/fs/cgroup/cpu,cpuacct");
  CHECK(places.v1[3] == "/sys/fs/cgroup/cpu,cpuacct");
  CHECK(places.v2.empty());
}

TEST_CASE("a group of version 2 is tried beside the own one first") {
  const CgroupPlaces places =
      parse_cgroups("31 30 0:28 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n",
                    "0::/user.slice/app.slice/term.scope\n");
  CHECK(places.v2 == std::vector<std::string>{
                         "/sys/fs/cgroup/user.slice/app.slice",
                         "/sys/fs/cgroup/user.slice/app.slice/term.scope"});
}

TEST_CASE("a path outside of the mounted groups is no place") {
  CHECK(parse_cgroups("31 30 0:28 /x /sys/fs/cgroup rw - cgroup2 c rw\n",
                      "0::/../y\n")
            .empty());
}

TEST_CASE("messages survive the wire and short ones are refused") {
  RunRequest request{.argv = {"a", "", std::string("b\xff\n")},
                     .env = {"X=1"},
                     .cwd = "/w",
                     .umask = 077,
                     .max_files = 5,
                     .max_processes = 6,
                     .controlling_terminal = true};
  const std::string data = encode(request);
  const RunRequest back = decode_run(data).value();
  CHECK(back.argv == request.argv);
  CHECK(back.cwd == "/w");
  CHECK(back.umask == 077);
  CHECK(back.controlling_terminal);
  for (size_t size = 0; size < data.size(); ++size)
    CHECK_FALSE(decode_run(std::string_view(data).substr(0, size)).has_value());
  const Error error = decode_error(
      encode(Error(Code::kUnsupported, "no mount", EPERM).with_hint("try")));
  CHECK(error.code() == Code::kUnsupported);
  CHECK(error.hint() == "try");
  CHECK(error.text() == "no mount: Operation not permitted");
}

TEST_CASE("a sweep removes what is left and never what is in use") {
  CgroupPlaces places = find_cgroups();
  const std::string name = fmt::format("stoplog-test-{}", ::getpid());
  CgroupSet used = CgroupSet::create(places, name + "-used");
  if (used.version() != 1) {
    WARN("no control groups to write");
    return;
  }
  const std::string parent = places.v1[0].empty() ? places.v1[1] : places.v1[0];
  const std::string left = parent + "/" + name + "-left";
  REQUIRE(::mkdir(left.c_str(), 0755) == 0);
  sweep_cgroups(places);
  CHECK(::access(left.c_str(), F_OK) != 0);
  CHECK(::access((parent + "/" + name + "-used").c_str(), F_OK) == 0);
  CHECK(used.usage().oom_kills == 0);
  CHECK(used.remove());
  CHECK(::access((parent + "/" + name + "-used").c_str(), F_OK) != 0);
}

TEST_CASE("a group whose last process is slow to die goes when it has died") {
  const CgroupPlaces places = find_cgroups();
  CgroupSet set = CgroupSet::create(
      places, fmt::format("stoplog-test-{}-slow", ::getpid()));
  if (set.version() != 1) {
    WARN("no control groups to write");
    return;
  }
  auto joins = set.join_fds();
  REQUIRE(joins);
  int joined[2];
  REQUIRE(::pipe(joined) == 0);
  const pid_t pid = ::fork();
  if (pid == 0) {
    for (const Fd& fd : *joins) (void)!::write(fd.get(), "0", 1);
    (void)!::write(joined[1], "x", 1);
    ::usleep(200000);
    ::_exit(0);
  }
  char word = 0;
  REQUIRE(::read(joined[0], &word, 1) == 1);
  CHECK_FALSE(set.remove());
  CHECK(set.remove(std::chrono::minutes(1)));
  CHECK(::waitpid(pid, nullptr, 0) == pid);
  ::close(joined[0]);
  ::close(joined[1]);
}
