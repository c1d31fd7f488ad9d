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
#include "jail/probe_judge.h"
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

constexpr char kAppArmorRestricts[] =
    "kernel/apparmor_restrict_unprivileged_userns";

// Each kind of namespace alone, so that the one that is refused has a name.
NamespaceFacts look_at_namespaces() {
  NamespaceFacts facts{
      .refused = {},
      .reason = {},
      .most = sysctl("user/max_user_namespaces"),
      .unprivileged_clone = sysctl("kernel/unprivileged_userns_clone"),
      .apparmor = sysctl(kAppArmorRestricts)};
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
    facts.refused = kind.name;
    facts.reason = pid.error().text();
    break;
  }
  return facts;
}

AppArmorFacts look_at_apparmor() {
  auto first_line = [](const char* path) {
    auto text = sys::read_file(AT_FDCWD, path, 4096);
    return text ? text->substr(0, text->find('\n')) : std::string();
  };
  return {
      .enabled = first_line("/sys/module/apparmor/parameters/enabled") == "Y",
      .restricts = sysctl(kAppArmorRestricts),
      .profile = first_line("/proc/self/attr/current"),
      .root = ::geteuid() == 0};
}

bool filters_calls() {
  const uint32_t action = SECCOMP_RET_KILL_PROCESS;
  return ::syscall(SYS_seccomp, SECCOMP_GET_ACTION_AVAIL, 0, &action) == 0;
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
  const NamespaceFacts namespaces = look_at_namespaces();
  report.checks = {
      judge_namespaces(namespaces), judge_apparmor(look_at_apparmor()),
      judge_seccomp(filters_calls()), judge_landlock(sys::landlock_abi())};
  {
    const std::string name =
        fmt::format("stoplog-{}-probe", process_mark(::getpid()));
    CgroupSet set = CgroupSet::create(find_cgroups(), name);
    // As a daemon does it.
    if (set.version() == 0 && enter_scope(find_scope_means()))
      set = CgroupSet::create(find_cgroups(), name);
    report.checks.push_back(judge_cgroups(limit_means(set)));
    report.limits = limits_held(set);
  }
  TrialFacts trial{
      .tried = report.ok(), .failure = {}, .root = ::geteuid() == 0};
  if (trial.tried)
    if (auto ran = trial_run(identity); !ran)
      trial.failure = ran.error().text();
  report.checks.push_back(judge_trial(trial, namespaces));
  return report;
}

}  // namespace stoplog::jail
