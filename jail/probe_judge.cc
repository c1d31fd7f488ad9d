// SPDX-License-Identifier: Apache-2.0
#include "jail/probe_judge.h"

namespace stoplog::jail {
namespace {

// What usually stands in the way of an ordinary user's namespaces.
std::string namespace_hint(const NamespaceFacts& facts) {
  if (facts.most == "0")
    return "user.max_user_namespaces is 0: raise it with sysctl(8)";
  if (facts.unprivileged_clone == "0")
    return "kernel.unprivileged_userns_clone is 0: set it to 1 with sysctl(8)";
  if (facts.apparmor == "1")
    return "AppArmor restricts user namespaces: install stoplog's AppArmor "
           "profile, or set kernel.apparmor_restrict_unprivileged_userns to 0";
  return "a container or a security module forbids user namespaces: allow "
         "them there, or run stoplog outside of it";
}

void add(std::string& list, const char* word) {
  if (!list.empty()) list += ", ";
  list += word;
}

}  // namespace

Check judge_namespaces(const NamespaceFacts& facts) {
  Check check{.name = "namespaces",
              .detail = "user, mount, pid, net, ipc, uts, cgroup",
              .hint = {}};
  if (facts.refused.empty()) return check;
  check.verdict = Verdict::kFail;
  check.detail = fmt::format("no {} namespace: {}; without it there is no jail",
                             facts.refused, facts.reason);
  check.hint = namespace_hint(facts);
  return check;
}

Check judge_apparmor(const AppArmorFacts& facts) {
  Check check{.name = "apparmor", .detail = {}, .hint = {}};
  if (!facts.enabled) {
    check.detail = "not in use";
  } else if (facts.restricts != "1") {
    check.detail = "does not restrict user namespaces";
  } else if (facts.root) {
    check.detail = "restricts user namespaces, of ordinary users alone";
  } else if (facts.profile.starts_with("stoplog")) {
    check.detail =
        "restricts user namespaces, but stoplog's by its profile not";
  } else {
    // Whether it keeps us from a jail was tried; this names it.
    check.verdict = Verdict::kWarn;
    check.detail =
        "restricts user namespaces, and this stoplog has no profile: the jail "
        "may be refused";
    check.hint =
        "install the stoplog package, or copy packaging/apparmor to "
        "/etc/apparmor.d/stoplog and run sudo apparmor_parser -r on it";
  }
  return check;
}

Check judge_seccomp(bool filters) {
  if (filters) return {.name = "seccomp", .detail = "filters", .hint = {}};
  return {.name = "seccomp",
          .verdict = Verdict::kFail,
          .detail =
              "this kernel cannot filter system calls; without that there is "
              "no jail",
          .hint = "boot a kernel with CONFIG_SECCOMP_FILTER"};
}

Check judge_landlock(int abi) {
  Check check{
      .name = "landlock", .detail = fmt::format("ABI {}", abi), .hint = {}};
  if (abi < 2) {
    check.verdict = Verdict::kFail;
    check.detail = abi <= 0 ? "absent or not enabled" : "too old (ABI 1)";
    check.detail += "; without it there is no jail";
    check.hint =
        "boot Linux 5.19 or newer with 'landlock' among the lsm= modules";
  } else if (abi < 6) {
    check.verdict = Verdict::kWarn;
    check.detail += ": no scopes, so --net host is refused";
    check.hint = "Linux 6.12 or newer has them";
  }
  return check;
}

Check judge_cgroups(const LimitMeans& means) {
  Check check{.name = "cgroups", .detail = {}, .hint = {}};
  constexpr const char* kDelegate =
      "log in through systemd with a delegated user slice, or run in a scope: "
      "systemd-run --user --scope -p Delegate=yes";
  if (means.cgroup_version == 0) {
    check.verdict = Verdict::kWarn;
    check.detail =
        "none writable: memory and CPU time are held by polling, which misses "
        "what lives for less than 25 ms, memory files that are only mapped, "
        "and the kernel's own buffers; --cpus is refused";
    check.hint = kDelegate;
    return check;
  }
  std::string have;
  std::string follows;
  if (means.memory) add(have, "memory");
  if (!means.memory) add(follows, "memory is held by polling");
  if (means.pids) add(have, "pids");
  if (!means.pids)
    add(follows, means.process_rlimit ? "processes are held by an rlimit"
                                      : "--pids is refused");
  if (means.cpu) add(have, "cpu");
  if (!means.cpu) add(follows, "--cpus is refused");
  if (means.cpuacct) add(have, "cpuacct");
  if (!means.cpuacct) add(follows, "CPU time is held by polling");
  check.detail = fmt::format("version {}: {}", means.cgroup_version,
                             have.empty() ? "no controller" : have);
  if (follows.empty()) return check;
  check.verdict = Verdict::kWarn;
  check.detail += "; " + follows;
  check.hint = kDelegate;
  return check;
}

Check judge_trial(const TrialFacts& trial, const NamespaceFacts& facts) {
  Check check{.name = "jail", .detail = "a command runs inside", .hint = {}};
  if (!trial.tried) {
    check.verdict = Verdict::kFail;
    check.detail = "not tried";
    check.hint = "mend what fails above";
  } else if (!trial.failure.empty()) {
    check.verdict = Verdict::kFail;
    check.detail = trial.failure;
    // The kernel mounts a procfs only beside one that is wholly visible.
    if (trial.failure.find("proc /proc") != std::string::npos)
      check.hint =
          "in a container with a masked /proc an ordinary user cannot have "
          "this: run as root, or unmask /proc";
    else if (trial.root &&
             trial.failure.find("map the jail's user") != std::string::npos)
      check.hint = kFewIdsHint;
    else
      check.hint = namespace_hint(facts);
  }
  return check;
}

}  // namespace stoplog::jail
