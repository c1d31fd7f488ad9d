// SPDX-License-Identifier: Apache-2.0
#include "jail/probe.h"

#include <fcntl.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>

#include "base/sys_file.h"
#include "base/sys_landlock.h"
#include "base/sys_process.h"

#include "jail/cgroup.h"
#include "jail/limits.h"
#include "jail/proc_tree.h"
#include "jail/running.h"
#include "jail/scope.h"
#include "jail/supervise.h"
#include "jail/zygote.h"

namespace stoplog::jail {
namespace {

std::string sysctl(const std::string& name) {
  auto text = sys::read_file(AT_FDCWD, "/proc/sys/" + name, 4096);
  if (!text) return {};
  while (!text->empty() && text->back() == '\n') text->pop_back();
  return *text;
}

// What usually stands in the way of an ordinary user's namespaces.
std::string namespace_hint() {
  if (sysctl("user/max_user_namespaces") == "0")
    return "user.max_user_namespaces is 0: raise it with sysctl(8)";
  if (sysctl("kernel/unprivileged_userns_clone") == "0")
    return "kernel.unprivileged_userns_clone is 0: set it to 1 with sysctl(8)";
  if (sysctl("kernel/apparmor_restrict_unprivileged_userns") == "1")
    return "AppArmor restricts user namespaces: install stoplog's AppArmor "
           "profile, or set kernel.apparmor_restrict_unprivileged_userns to 0";
  return "a container or a security module forbids user namespaces";
}

// Each kind of namespace alone, so that the one that is refused has a name.
Check check_namespaces() {
  Check check{.name = "namespaces", .detail = {}, .hint = {}};
  struct Kind {
    uint64_t flag;
    const char* name;
  };
  constexpr std::array kKinds = {Kind{0, "user"},
                                 Kind{CLONE_NEWNS, "mount"},
                                 Kind{CLONE_NEWPID, "pid"},
                                 Kind{CLONE_NEWNET, "net"},
                                 Kind{CLONE_NEWIPC, "ipc"},
                                 Kind{CLONE_NEWUTS, "uts"},
                                 Kind{CLONE_NEWCGROUP, "cgroup"}};
  for (const Kind& kind : kKinds) {
    clone_args args{};
    args.flags = CLONE_NEWUSER | kind.flag;
    args.exit_signal = SIGCHLD;
    Fd pidfd;
    auto pid = sys::clone3(args, &pidfd);
    if (pid && *pid == 0) ::_exit(0);
    if (pid) {
      (void)sys::wait_pidfd(pidfd.get(), sys::Wait::kBlock);
      continue;
    }
    check.verdict = Verdict::kFail;
    check.detail =
        fmt::format("no {} namespace: {}", kind.name, pid.error().text());
    check.hint = namespace_hint();
    return check;
  }
  check.detail = "user, mount, pid, net, ipc, uts, cgroup";
  return check;
}

Check check_seccomp() {
  const uint32_t action = SECCOMP_RET_KILL_PROCESS;
  if (::syscall(SYS_seccomp, SECCOMP_GET_ACTION_AVAIL, 0, &action) == 0)
    return {.name = "seccomp", .detail = "filters", .hint = {}};
  return {.name = "seccomp",
          .verdict = Verdict::kFail,
          .detail = "this kernel cannot filter system calls",
          .hint = "boot a kernel with CONFIG_SECCOMP_FILTER"};
}

Check check_landlock() {
  const int abi = sys::landlock_abi();
  Check check{
      .name = "landlock", .detail = fmt::format("ABI {}", abi), .hint = {}};
  if (abi < 2) {
    check.verdict = Verdict::kFail;
    check.detail = abi == 0 ? "absent or not enabled" : "too old (ABI 1)";
    check.hint =
        "boot Linux 5.19 or newer with 'landlock' among the lsm= modules";
  } else if (abi < 6) {
    check.verdict = Verdict::kWarn;
    check.detail += ": no scopes, so --net host is refused";
    check.hint = "Linux 6.12 or newer has them";
  }
  return check;
}

Check check_cgroups(const CgroupSet& set) {
  Check check{.name = "cgroups", .detail = {}, .hint = {}};
  constexpr std::array<std::pair<Controller, const char*>, 4> kNames = {
      {{Controller::kMemory, "memory"},
       {Controller::kPids, "pids"},
       {Controller::kCpu, "cpu"},
       {Controller::kCpuacct, "cpuacct"}}};
  std::string have;
  for (const auto& [controller, name] : kNames)
    if (set.has(controller))
      have += std::string(have.empty() ? "" : ", ") + name;
  if (set.version() == 0) {
    check.verdict = Verdict::kWarn;
    check.detail = "none writable: limits are held by polling";
    check.hint =
        "log in through systemd with a delegated user slice, or run "
        "in a scope: systemd-run --user --scope -p Delegate=yes";
  } else {
    check.detail = fmt::format("version {}: {}", set.version(), have);
  }
  return check;
}

Held limits_held(const CgroupSet& set) {
  CommandSpec all;
  all.limits = {.time = Limits::Millis(1),
                .cpu = Limits::Millis(1),
                .cpus = 1,
                .memory = 1,
                .pids = 1,
                .files = 1,
                .output = 1};
  auto plan = plan_limits(all, limit_means(set));
  return plan ? plan->held : Held{};
}

Status trial_run(const Identity& identity) {
  const std::string dir =
      fmt::format("/tmp/stoplog-probe-{}", process_mark(::getpid()));
  TRY_CTX(sys::mkdirat(AT_FDCWD, dir, 0755), "cannot make " + dir);
  auto run = [&]() -> Status {
    JailSpec spec;
    spec.identity = identity;
    spec.workspace = "/home/user/probe";
    spec.workspace_tree.path = dir;
    spec.home = "/home/user";
    Zygote zygote = TRY(Zygote::start(spec));
    TRY(zygote.wait_ready());
    Fd null = TRY(sys::openat(AT_FDCWD, "/dev/null", O_RDWR));
    CommandSpec command{.argv = {"/bin/true"},
                        .cwd = spec.workspace,
                        .env = {},
                        .limits = {},
                        .required = {}};
    command.limits.time = std::chrono::seconds(10);
    auto running =
        TRY(zygote.spawn(command, {null.get(), null.get(), null.get()}));
    const Outcome outcome = supervise(*running, {});
    if (outcome.not_run)
      return fail(Code::kUnsupported, "{}", *outcome.not_run);
    if (outcome.exit != 0)
      return fail(Code::kUnsupported, "/bin/true exited with {} inside",
                  outcome.exit);
    return {};
  }();
  (void)sys::unlinkat(AT_FDCWD, dir, AT_REMOVEDIR);
  return run;
}

}  // namespace

bool ProbeReport::ok() const {
  return std::none_of(checks.begin(), checks.end(), [](const Check& check) {
    return check.verdict == Verdict::kFail;
  });
}

ProbeReport probe_jail(const Identity& identity) {
  ProbeReport report;
  report.checks = {check_namespaces(), check_seccomp(), check_landlock()};
  {
    const std::string name =
        fmt::format("stoplog-{}-probe", process_mark(::getpid()));
    CgroupSet set = CgroupSet::create(find_cgroups(), name);
    // As a daemon does it.
    if (set.version() == 0 && enter_scope(find_scope_means()))
      set = CgroupSet::create(find_cgroups(), name);
    report.checks.push_back(check_cgroups(set));
    report.limits = limits_held(set);
  }
  Check jail{.name = "jail", .detail = "a command runs inside", .hint = {}};
  if (!report.ok()) {
    jail.verdict = Verdict::kFail;
    jail.detail = "not tried";
  } else if (auto tried = trial_run(identity); !tried) {
    jail.verdict = Verdict::kFail;
    jail.detail = tried.error().text();
    // The kernel mounts a procfs only beside one that is wholly visible.
    jail.hint = jail.detail.find("proc /proc") != std::string::npos
                    ? "in a container with a masked /proc an ordinary user "
                      "cannot have this: run as root, or unmask /proc"
                    : namespace_hint();
  }
  report.checks.push_back(std::move(jail));
  return report;
}

}  // namespace stoplog::jail
