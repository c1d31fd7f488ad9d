// SPDX-License-Identifier: Apache-2.0
#include "jail/limits.h"

#include <sys/utsname.h>

#include <algorithm>
#include <cstdio>

#include "jail/cgroup.h"

namespace stoplog::jail {
namespace {

Mechanism choose(LimitKind kind, const LimitMeans& means) {
  const Mechanism group =
      means.cgroup_version == 2 ? Mechanism::kCgroup2 : Mechanism::kCgroup1;
  const Mechanism poll = means.proc ? Mechanism::kPoll : Mechanism::kNone;
  switch (kind) {
    case LimitKind::kTime:
    case LimitKind::kOutput:
      return Mechanism::kSupervisor;
    case LimitKind::kFiles:
      return Mechanism::kRlimit;
    case LimitKind::kCpu:
      return means.cpuacct ? group : poll;
    case LimitKind::kMemory:
      return means.memory ? group : poll;
    case LimitKind::kPids:
      if (means.pids) return group;
      // Counted by us it could only kill, and this one is to refuse.
      return means.process_rlimit ? Mechanism::kRlimit : Mechanism::kNone;
    case LimitKind::kCpus:
      return means.cpu ? group : Mechanism::kNone;
  }
  return Mechanism::kNone;
}

bool processes_counted_per_namespace() {
  utsname name{};
  int major = 0, minor = 0;
  if (::uname(&name) < 0 ||
      std::sscanf(name.release, "%d.%d", &major, &minor) != 2)
    return false;
  return major > 5 || (major == 5 && minor >= 14);
}

}  // namespace

LimitMeans limit_means(const CgroupSet& cgroup) {
  return {.cgroup_version = cgroup.version(),
          .memory = cgroup.has(Controller::kMemory),
          .pids = cgroup.has(Controller::kPids),
          .cpu = cgroup.has(Controller::kCpu),
          .cpuacct = cgroup.has(Controller::kCpuacct),
          .process_rlimit = processes_counted_per_namespace()};
}

bool has_limit(const Limits& limits, LimitKind kind) {
  switch (kind) {
    case LimitKind::kTime:
      return limits.time.has_value();
    case LimitKind::kCpu:
      return limits.cpu.has_value();
    case LimitKind::kCpus:
      return limits.cpus.has_value();
    case LimitKind::kMemory:
      return limits.memory.has_value();
    case LimitKind::kPids:
      return limits.pids.has_value();
    case LimitKind::kFiles:
      return limits.files.has_value();
    case LimitKind::kOutput:
      return limits.output.has_value();
  }
  return false;
}

Result<LimitPlan> plan_limits(const CommandSpec& command,
                              const LimitMeans& means) {
  LimitPlan plan;
  for (LimitKind kind : kAllLimits) {
    if (!has_limit(command.limits, kind)) continue;
    plan.held[kind] = choose(kind, means);
    if (plan.held[kind] != Mechanism::kNone) continue;
    const bool asked =
        std::find(command.required.begin(), command.required.end(), kind) !=
        command.required.end();
    if (asked)
      return std::unexpected(
          Error(Code::kUnsupported,
                fmt::format("cannot hold the limit '{}' on this machine",
                            limit_name(kind)))
              .with_hint("it needs a writable control group; 'stoplog doctor' "
                         "tells which limits are held by what"));
    plan.not_held.push_back(kind);
  }
  return plan;
}

}  // namespace stoplog::jail
