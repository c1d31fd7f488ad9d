// SPDX-License-Identifier: Apache-2.0
#include "cli/run_dry.h"

#include "base/escape.h"
#include "base/sys_landlock.h"
#include "base/units.h"
#include "cli/words.h"
#include "draft/jail_setup.h"
#include "jail/environment.h"
#include "jail/landlock_plan.h"
#include "jail/mount_plan.h"
#include "jail/seccomp_policy.h"

namespace stoplog::cli {
namespace {

void section(std::string& out, std::string_view title) {
  out += fmt::format("\n{}\n", title);
}

void line(std::string& out, std::string_view text) {
  out += fmt::format("  {}\n", escape(text));
}

void limits_text(std::string& out, const draft::Limits& limits) {
  auto put = [&](const char* name, const draft::Limit& limit, auto print) {
    if (!limit.value) return;
    line(out, fmt::format("{} {}{}", name, print(*limit.value),
                          limit.asked ? "" : " (best effort)"));
  };
  auto time = [](uint64_t ms) {
    return print_duration(Millis(static_cast<int64_t>(ms)));
  };
  auto size = [](uint64_t n) { return print_size(n); };
  auto number = [](uint64_t n) { return std::to_string(n); };
  auto cpus = [](uint64_t n) {
    return fmt::format("{}.{:03}", n / 1000, n % 1000);
  };
  put("time", limits.time_ms, time);
  put("cpu", limits.cpu_ms, time);
  put("cpus", limits.cpus_milli, cpus);
  put("memory", limits.memory, size);
  put("pids", limits.pids, number);
  put("files", limits.files, number);
  put("output", limits.output, size);
  put("disk", limits.disk, size);
  put("inodes", limits.inodes, number);
}

}  // namespace

Result<std::string> dry_run_text(const draft::Workspace& workspace,
                                 const draft::Layout& layout,
                                 const RunPlan& plan) {
  sys::Stat owner = TRY(sys::statat(AT_FDCWD, workspace.path));
  // Names of what does not exist yet: the draft is only made by a real run.
  draft::JailPlan jail = TRY(draft::make_jail_spec({
      .shape = plan.shape,
      .identity = draft::jail_identity("", owner),
      .workspace = workspace.path,
      .mount = "<the draft's view>",
      .home_mount = "<the draft's HOME>",
      .notes = "<the draft's notes>",
      .state = layout.state,
  }));
  const jail::HostFacts facts = jail::gather_facts(jail.spec);
  std::string out =
      fmt::format("command: {}\nin: {}\nuser: {} (host id {})\nnetwork: {}\n",
                  show_argv(plan.request.argv, 0), escape(workspace.path),
                  jail.spec.identity.user, jail.spec.identity.host_uid,
                  plan.shape.host_network ? "host" : "none");
  section(out, "limits:");
  limits_text(out, plan.request.limits);
  section(out, "file system:");
  for (const jail::MountOp& op : TRY(jail::plan_root(jail.spec, facts)))
    line(out, jail::describe(op));
  for (const jail::MountOp& op : jail::plan_proc(jail.spec, facts))
    line(out, jail::describe(op));
  for (const std::string& entry : jail.left_out)
    line(out, fmt::format("left out of PATH: {}", entry));
  if (!jail.git_refused.empty())
    line(out, "left out: the directory that .git names: " + jail.git_refused);
  section(out, "landlock:");
  jail::LandlockPlan landlock =
      TRY(jail::plan_landlock(jail.spec, sys::landlock_abi()));
  for (const jail::LandlockRule& rule : landlock.rules)
    line(out, jail::describe(rule));
  section(out, "environment:");
  std::string cwd = workspace.path;
  if (!plan.request.cwd.empty()) cwd += "/" + plan.request.cwd;
  for (const std::string& entry :
       jail::build_environment(jail.spec, {.caller = plan.request.env,
                                           .extra = plan.request.env_extra,
                                           .path = jail.path,
                                           .cwd = cwd,
                                           .shell = plan.request.shell}))
    line(out, entry);
  section(out, "system calls:");
  for (const jail::CallRule& rule : jail::seccomp_policy())
    line(out, jail::describe(rule));
  return out;
}

}  // namespace stoplog::cli
