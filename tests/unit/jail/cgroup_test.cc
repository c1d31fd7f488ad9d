// SPDX-License-Identifier: Apache-2.0
// Groups of version 2 with controllers, played by files: the machines that run
// the tests have their controllers in version 1. What the kernel does with what
// is written is not tested by this.
#include "jail/cgroup.h"

#include <sys/stat.h>
#include <unistd.h>

#include "base/sys_file.h"
#include "base/temp_file.h"
#include "catch_shim.h"
#include "jail/limits.h"
#include "scratch.h"

using namespace stoplog;
using namespace stoplog::jail;

namespace {

struct Fake {
  explicit Fake(std::string controllers) : given(std::move(controllers)) {
    put(scratch.fd(), "cgroup.controllers", given + "\n");
    put(scratch.fd(), "cgroup.subtree_control", "");
  }
  static void put(int dir, const char* name, const std::string& text) {
    REQUIRE(write_file(dir, name, text, 0644, Sync::kNo));
  }
  // What the kernel would have in a new group.
  Status fill(int parent, const std::string& name) const {
    TRY(sys::mkdirat(parent, name, 0755));
    Fd dir = TRY(sys::openat(parent, name, O_RDONLY | O_DIRECTORY));
    put(dir.get(), "cgroup.procs", "");
    put(dir.get(), "cgroup.controllers", given + "\n");
    put(dir.get(), "cpu.stat",
        "usage_usec 3000\nuser_usec 2000\nsystem_usec 1000\n");
    if (given.find("memory") != std::string::npos) {
      for (const char* file :
           {"memory.max", "memory.swap.max", "memory.oom.group"})
        put(dir.get(), file, "");
      put(dir.get(), "memory.current", "4096\n");
      put(dir.get(), "memory.peak", "8192\n");
      put(dir.get(), "memory.events", "low 0\nhigh 0\noom 2\noom_kill 1\n");
    }
    if (given.find("pids") != std::string::npos) {
      put(dir.get(), "pids.max", "max\n");
      put(dir.get(), "pids.current", "2\n");
      put(dir.get(), "pids.peak", "5\n");
      put(dir.get(), "pids.events", "max 7\n");
    }
    if (given.find("cpu ") != std::string::npos || given.ends_with("cpu"))
      put(dir.get(), "cpu.max", "max 100000\n");
    return {};
  }
  CgroupSet create() {
    CgroupPlaces places;
    places.v2 = {scratch.path()};
    return CgroupSet::create(places, "stoplog-1-1",
                             [this](int parent, const std::string& name) {
                               return fill(parent, name);
                             });
  }
  std::string read(const std::string& name) {
    return sys::read_file(scratch.fd(), name, 4096).value_or("<none>");
  }
  std::string given;
  Scratch scratch;
};

}  // namespace

TEST_CASE("a delegated group of version 2 holds and measures") {
  Fake fake("cpuset cpu io memory pids");
  CgroupSet set = fake.create();
  REQUIRE(set.version() == 2);
  CHECK(set.clone_fd() >= 0);
  // Handed down before the group was made.
  CHECK(fake.read("cgroup.subtree_control").find('+') != std::string::npos);
  REQUIRE(set.limit_memory(1 << 20));
  REQUIRE(set.limit_pids(10));
  REQUIRE(set.limit_cpus(1.5));
  CHECK(fake.read("stoplog-1-1/memory.max") == "1048576");
  CHECK(fake.read("stoplog-1-1/memory.swap.max") == "0");
  CHECK(fake.read("stoplog-1-1/memory.oom.group") == "1");
  CHECK(fake.read("stoplog-1-1/pids.max").starts_with("11"));  // and init
  CHECK(fake.read("stoplog-1-1/cpu.max").starts_with("150000 100000"));
  const CgroupUsage usage = set.usage();
  CHECK(usage.cpu_us == 3000u);
  CHECK(usage.user_us == 2000u);
  CHECK(usage.system_us == 1000u);
  CHECK(usage.memory_peak == 8192u);
  CHECK(usage.pids_peak == 5u);
  CHECK(usage.oom_kills == 1);
  CHECK(usage.pids_refused == 7);
  const LimitMeans means = limit_means(set);
  CHECK(means.cgroup_version == 2);
  CHECK((means.memory && means.pids && means.cpu && means.cpuacct));
}

TEST_CASE("a group that was given a part of the controllers holds that part") {
  Fake fake("memory pids");
  CgroupSet set = fake.create();
  REQUIRE(set.version() == 2);
  CHECK(set.has(Controller::kMemory));
  CHECK_FALSE(set.has(Controller::kCpu));
  CHECK(set.has(Controller::kCpuacct));  // counted in every group
  CommandSpec command;
  command.limits.cpus = 1;
  command.limits.memory = 1 << 20;
  command.required = {LimitKind::kMemory};
  auto plan = plan_limits(command, limit_means(set));
  REQUIRE(plan);
  CHECK(plan->held[LimitKind::kMemory] == Mechanism::kCgroup2);
  CHECK(plan->held[LimitKind::kCpus] == Mechanism::kNone);
  command.required = {LimitKind::kCpus};
  CHECK_FALSE(plan_limits(command, limit_means(set)));
}

TEST_CASE("groups of version 2 without controllers are left alone") {
  Fake fake("");
  CHECK(fake.create().version() == 0);
  CHECK(fake.read("stoplog-1-1/cgroup.procs") == "<none>");
  // The real thing, where controllers are in version 1.
  const std::string top = "/sys/fs/cgroup/unified";
  if (::access((top + "/cgroup.procs").c_str(), W_OK) != 0) return;
  CgroupPlaces places;
  places.v2 = {top};
  CHECK(CgroupSet::create(places, "stoplog-unit-none").version() == 0);
  CHECK(::access((top + "/stoplog-unit-none").c_str(), F_OK) != 0);
}
