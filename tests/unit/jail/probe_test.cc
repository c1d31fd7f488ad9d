// SPDX-License-Identifier: Apache-2.0
#include <unistd.h>

#include "catch_shim.h"
#include "jail/probe.h"

using namespace stoplog::jail;

TEST_CASE("the probe tells of each wall and leaves nothing") {
  Identity identity{
      .host_uid = ::getuid(), .host_gid = ::getgid(), .uid = 1000, .gid = 1000};
  if (::getuid() == 0) identity.host_uid = identity.host_gid = 65533;
  const ProbeReport report = probe_jail(identity);
  std::vector<std::string> names;
  for (const Check& check : report.checks) {
    names.push_back(check.name);
    if (check.verdict == Verdict::kFail) CHECK_FALSE(check.hint.empty());
    CHECK_FALSE(check.detail.empty());
    INFO(check.name << ": " << check.detail);
  }
  CHECK(names == std::vector<std::string>{"namespaces", "seccomp", "landlock",
                                          "cgroups", "jail"});
  CHECK(report.limits[LimitKind::kTime] == Mechanism::kSupervisor);
  CHECK(report.limits[LimitKind::kMemory] != Mechanism::kNone);
  if (!report.ok()) WARN("this machine cannot hold a jail");
}
