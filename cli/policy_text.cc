// SPDX-License-Identifier: Apache-2.0
#include "cli/policy_text.h"

#include <fcntl.h>
#include <sys/stat.h>

#include "base/glob.h"
#include "base/json.h"
#include "base/sys_file.h"
#include "base/units.h"

namespace stoplog::cli {
namespace {

using draft::NetMode;
using draft::Policy;
using draft::Sourced;
using Number = Sourced<std::optional<uint64_t>>;
using List = Sourced<std::vector<std::string>>;

std::string quoted(std::string_view text) {
  std::string out;
  json_quote(out, text);
  return out;
}

std::string duration(const Number& n) {
  return quoted(
      n.value ? print_duration_exact(Millis(static_cast<int64_t>(*n.value)))
              : "none");
}
std::string size(const Number& n) {
  return quoted(n.value ? print_size_exact(*n.value) : "none");
}
std::string count(const Number& n, uint64_t scale = 1) {
  return n.value ? std::to_string(*n.value / scale) : quoted("none");
}
std::string list(const List& l) {
  std::string out = "[";
  for (const std::string& item : l.value)
    out += (out.size() > 1 ? ", " : "") + quoted(item);
  return out + "]";
}

// The first glob of `globs` that covers the path, as a reason.
bool covered(const List& globs, std::string_view key, const RelPath& path,
             std::vector<std::string>& reasons) {
  for (const std::string& text : globs.value) {
    auto glob = Glob::parse(text);
    if (!glob || !glob->covers(path.str())) continue;
    reasons.push_back(
        fmt::format("{} has \"{}\" ({})", key, text, globs.origin));
    return true;
  }
  return false;
}

Explanation explain_path(const Policy& p, const RelPath& path) {
  Explanation e{.kind = "path"};
  if (covered(p.hide, "files.hide", path, e.reasons))
    e.verdict = "hidden: it is not there inside the jail";
  else if (covered(p.mask, "files.mask", path, e.reasons))
    e.verdict =
        p.mask.origin == "default"
            ? "masked unless git has it: there, with its content replaced"
            : "masked: there, with its content replaced";
  else if (covered(p.read_only, "files.read_only", path, e.reasons))
    e.verdict = "read-only: every change fails";
  else if (p.gate_mode.value == "observe")
    e.verdict = "read-only: gate.mode is \"observe\"";
  else
    e.verdict = "readable; changes are held for review";
  if (covered(p.always_ask, "gate.always_ask", path, e.reasons))
    e.verdict += "; a change of it is a danger";
  else if (covered(p.auto_approve, "gate.auto_approve", path, e.reasons))
    e.verdict += "; a change of it without a danger is approved unasked";
  return e;
}

Explanation explain_host(const Policy& p, const draft::NetRule& host) {
  Explanation e{.kind = "host"};
  if (p.allow.value.empty()) {
    e.verdict = "denied: a command has no network";
    e.reasons.push_back(
        fmt::format("network.allow is empty ({})", p.allow.origin));
    return e;
  }
  for (const std::string& text : p.allow.value) {
    auto rule = draft::parse_net_rule(text);
    if (!rule || rule->host != host.host) continue;
    bool port = host.port == 0 || host.port == rule->port ||
                (rule->port == 0 && (host.port == 443 || host.port == 80));
    if (!port) continue;
    // As `run` says: what is not held is not open either.
    e.verdict = "denied: this version cannot hold an allow list";
    e.reasons.push_back(
        fmt::format("network.allow has \"{}\" ({})", text, p.allow.origin));
    e.reasons.push_back("a command has no network, unless with --net host");
    return e;
  }
  e.verdict = "denied";
  e.reasons.push_back(
      fmt::format("network.allow does not name it ({})", p.allow.origin));
  return e;
}

Explanation explain_command(const Policy& p) {
  Explanation e{.kind = "command", .verdict = "runs in the jail, limited"};
  for (const PolicyLine& line : policy_lines(p))
    if (line.key.starts_with("limits.") && line.value != "\"none\"" &&
        line.value != "[]")
      e.reasons.push_back(
          fmt::format("{} = {} ({})", line.key, line.value, line.origin));
  e.reasons.push_back(p.allow.value.empty()
                          ? fmt::format("no network ({})", p.allow.origin)
                          : fmt::format("no network: this version cannot hold "
                                        "network.allow = {} ({})",
                                        list(p.allow), p.allow.origin));
  return e;
}

}  // namespace

std::vector<PolicyLine> policy_lines(const Policy& p) {
  const draft::PolicyLimits& l = p.limits;
  return {
      {"limits.time", duration(l.time), l.time.origin},
      {"limits.cpu", duration(l.cpu), l.cpu.origin},
      {"limits.cpus", count(l.cpus, 1000), l.cpus.origin},
      {"limits.memory", size(l.memory), l.memory.origin},
      {"limits.pids", count(l.pids), l.pids.origin},
      {"limits.files", count(l.files), l.files.origin},
      {"limits.output", size(l.output), l.output.origin},
      {"limits.disk", size(l.disk), l.disk.origin},
      {"limits.inodes", count(l.inodes), l.inodes.origin},
      {"limits.required", list(p.required), p.required.origin},
      {"network.allow", list(p.allow), p.allow.origin},
      {"files.hide", list(p.hide), p.hide.origin},
      {"files.mask", list(p.mask), p.mask.origin},
      {"files.read_only", list(p.read_only), p.read_only.origin},
      {"env.pass", list(p.env_pass), p.env_pass.origin},
      {"gate.mode", quoted(p.gate_mode.value), p.gate_mode.origin},
      {"gate.max_age", duration(p.max_age), p.max_age.origin},
      {"gate.always_ask", list(p.always_ask), p.always_ask.origin},
      {"gate.auto_approve", list(p.auto_approve), p.auto_approve.origin},
      {"gate.dangers", list(p.dangers), p.dangers.origin},
      {"gate.ignored", quoted(p.ignored.value), p.ignored.origin},
      {"gate.undo_size", size(p.undo_size), p.undo_size.origin},
      {"history.max_age", duration(p.history_age), p.history_age.origin},
      {"history.max_size", size(p.history_size), p.history_size.origin},
  };
}

Result<Explanation> explain(const Policy& policy,
                            const draft::Workspace& workspace,
                            const std::string& subject) {
  auto path = draft::workspace_path(workspace, subject);
  bool exists =
      path &&
      sys::statat(AT_FDCWD, workspace.path + "/" + path->str()).has_value();
  if (!path && subject.starts_with('/')) {
    // A link (/bin/sh is one) can be executed by its mode, too.
    auto there = sys::statat(AT_FDCWD, subject);
    if (there && !S_ISDIR(there->mode) && (there->mode & 0111) != 0)
      return explain_command(policy);
    return Explanation{.kind = "path",
                       .verdict =
                           "outside of the workspace: inside there is "
                           "what the system needs, read-only, and what "
                           "--bind-ro shows"};
  }
  // Words with a blank between them are a command, unless there is such a file.
  bool words = subject.find(' ') != subject.npos;
  if (exists || (!words && (subject.find('/') != subject.npos ||
                            subject.starts_with('.'))))
    return explain_path(policy, TRY(std::move(path)));
  // A name that a rule for files speaks of is a file, whatever it looks like.
  if (path)
    if (Explanation e = explain_path(policy, *path); !e.reasons.empty())
      return e;
  auto host = draft::parse_net_rule(subject);
  if (host && subject.find_first_of(".:") != subject.npos)
    return explain_host(policy, *host);
  return explain_command(policy);
}

const std::string_view kUserSample =
    R"(# The policy of stoplog: what an agent may do. `stoplog policy show` says what
# is in force and why. Every key is optional; "none" takes a limit away.

[limits]
# time = "30m"       # wall clock of one command
# cpu = "20m"        # of all its processes together
# cpus = 2           # processors at once
# memory = "4G"
# pids = 512
# files = 4096       # open files of each process
# output = "64M"     # bytes written to stdout and stderr
# disk = "5G"        # held by the draft
# inodes = 200000    # files held by the draft
# required = ["memory", "pids"]   # nothing runs where these cannot be held

[network]
# Nothing is reachable. A list is read, and not yet held: no network either.
# allow = ["registry.example.org", "packages.example.org:443"]

[files]
# hide = ["secrets/**"]         # not there at all
# mask = [".env", ".env.*"]     # there, with the content replaced
# read_only = ["LICENSE"]

[env]
# pass = ["LANG", "TERM"]       # variables that enter the jail

[gate]
# mode = "gated"                # observe, hold, gated or auto
# max_age = "24h"               # older approvals must be renewed
# always_ask = [".github/**"]   # always a danger
# dangers = ["package-script"]  # risks that are a danger here, by their code
# auto_approve = ["docs/**"]    # approved unasked when no danger is in it
# ignored = "hold"              # or "commit": files that git ignores
# undo_size = "10G"             # what replaced contents may take

[history]
# max_age = "30d"               # older marks are let go by `stoplog gc`
# max_size = "20G"              # of a draft, its past included

# A preset is used with `stoplog run --preset NAME`.
# [preset.quick.limits]
# time = "2m"
)";

const std::string_view kWorkspaceSample =
    R"(# What every draft over this directory is held to, besides each user's own
# policy. This file can only tighten: lower limits, more hidden files, fewer
# hosts. Everything else in it is ignored, with a warning.

[limits]
# time = "30m"
# memory = "4G"

[files]
# hide = ["secrets/**"]
# mask = [".env", ".env.*"]
# read_only = ["LICENSE"]

[gate]
# always_ask = [".github/**"]
)";

}  // namespace stoplog::cli
