// SPDX-License-Identifier: Apache-2.0
#include <unistd.h>

#include "catch_shim.h"
#include "jail/probe.h"
#include "jail/probe_judge.h"

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
  CHECK(names == std::vector<std::string>{"namespaces", "apparmor", "seccomp",
                                          "landlock", "cgroups", "jail"});
  CHECK(report.limits[LimitKind::kTime] == Mechanism::kSupervisor);
  CHECK(report.limits[LimitKind::kMemory] != Mechanism::kNone);
  if (!report.ok()) WARN("this machine cannot hold a jail");
}

namespace {

// A bad verdict names what follows from it and what to do.
void says(const Check& check, Verdict verdict, const char* follows,
          const char* fix) {
  INFO(check.name << ": " << check.detail << " | " << check.hint);
  CHECK(check.verdict == verdict);
  CHECK(check.detail.find(follows) != std::string::npos);
  CHECK(check.hint.find(fix) != std::string::npos);
}
void is_well(const Check& check) {
  INFO(check.name << ": " << check.detail);
  CHECK(check.verdict == Verdict::kOk);
  CHECK_FALSE(check.detail.empty());
  CHECK(check.hint.empty());
}

}  // namespace

TEST_CASE("a refused namespace: which, what follows, and each usual cause") {
  is_well(judge_namespaces({}));
  NamespaceFacts facts{.refused = "user",
                       .reason = "No space left on device",
                       .most = "0",
                       .unprivileged_clone = "0",
                       .apparmor = "1"};
  says(judge_namespaces(facts), Verdict::kFail,
       "no user namespace: No space left on device; without it there is no "
       "jail",
       "user.max_user_namespaces is 0: raise it");
  facts.most = "15000";
  says(judge_namespaces(facts), Verdict::kFail, "no jail",
       "kernel.unprivileged_userns_clone is 0: set it to 1");
  facts.unprivileged_clone = "1";
  says(judge_namespaces(facts), Verdict::kFail, "no jail",
       "install stoplog's AppArmor profile");
  facts.apparmor = "0";
  facts.refused = "net";
  says(judge_namespaces(facts), Verdict::kFail, "no net namespace",
       "a container or a security module");
}

TEST_CASE("AppArmor warns where it restricts us, and there alone") {
  is_well(judge_apparmor({}));
  AppArmorFacts facts{.enabled = true, .restricts = "0", .profile = {}};
  is_well(judge_apparmor(facts));
  facts.restricts = "";  // a kernel that does not know the setting
  is_well(judge_apparmor(facts));
  facts = {.enabled = true, .restricts = "1", .profile = "unconfined"};
  says(judge_apparmor(facts), Verdict::kWarn, "the jail may be refused",
       "/etc/apparmor.d/stoplog");
  facts.profile = "stoplog (unconfined)";
  is_well(judge_apparmor(facts));
  facts = {.enabled = true, .restricts = "1", .profile = {}, .root = true};
  is_well(judge_apparmor(facts));
}

TEST_CASE("a kernel without filters or Landlock holds no jail") {
  is_well(judge_seccomp(true));
  says(judge_seccomp(false), Verdict::kFail, "no jail",
       "CONFIG_SECCOMP_FILTER");
  says(judge_landlock(0), Verdict::kFail, "absent or not enabled; without it",
       "lsm=");
  says(judge_landlock(1), Verdict::kFail, "too old (ABI 1)", "Linux 5.19");
  for (int abi : {2, 3, 4, 5})
    says(judge_landlock(abi), Verdict::kWarn, "--net host is refused",
         "Linux 6.12");
  is_well(judge_landlock(6));
  is_well(judge_landlock(9));
}

TEST_CASE("of control groups each missing controller has a consequence") {
  LimitMeans means{.cgroup_version = 2,
                   .memory = true,
                   .pids = true,
                   .cpu = true,
                   .cpuacct = true,
                   .process_rlimit = true};
  is_well(judge_cgroups(means));
  means.memory = false;
  says(judge_cgroups(means), Verdict::kWarn, "; memory is held by polling",
       "Delegate=yes");
  means.pids = false;
  says(judge_cgroups(means), Verdict::kWarn, "processes are held by an rlimit",
       "Delegate=yes");
  means.process_rlimit = false;
  says(judge_cgroups(means), Verdict::kWarn, "--pids is refused",
       "Delegate=yes");
  means.cpu = means.cpuacct = false;
  says(judge_cgroups(means), Verdict::kWarn,
       "version 2: no controller; memory is held by polling, --pids is "
       "refused, --cpus is refused, CPU time is held by polling",
       "Delegate=yes");
  says(judge_cgroups({}), Verdict::kWarn, "none writable", "Delegate=yes");
}

TEST_CASE("a jail that was not tried, or did not stand, fails") {
  is_well(judge_trial({.tried = true, .failure = {}}, {}));
  says(judge_trial({}, {}), Verdict::kFail, "not tried", "above");
  says(judge_trial({.tried = true,
                    .failure = "cannot map the jail's user: no",
                    .root = true},
                   {}),
       Verdict::kFail, "map the jail's user", "too few users");
  says(judge_trial({.tried = true,
                    .failure = "cannot mount proc /proc: Operation not "
                               "permitted"},
                   {}),
       Verdict::kFail, "cannot mount proc", "unmask /proc");
  NamespaceFacts facts;
  facts.apparmor = "1";
  says(judge_trial({.tried = true, .failure = "cannot map users"}, facts),
       Verdict::kFail, "cannot map users", "AppArmor");
}
