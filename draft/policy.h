// SPDX-License-Identifier: Apache-2.0
// What an agent may do here, put together from four places: the defaults, the
// user's config.toml, a preset of it, and the workspace's .stoplog.toml, which
// may only tighten (an agent could have written it). Options of the command
// line come last and are the user's own word.
//
//   PolicyFiles files = TRY(read_policy_files(layout, workspace));
//   Policy policy = TRY(make_policy(files, "strict"));
//   policy.limits.memory.value; policy.limits.memory.origin; policy.digest();
//
// A value carries where it came from. A value that loosens, in the workspace's
// file, is ignored and named in `warnings`; so are unknown keys of both files.
// A value of the wrong kind is an error with line and column. Files are read
// from the real tree, bounded; make_policy is pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "base/result.h"
#include "draft/layout.h"
#include "draft/protocol.h"
#include "draft/toml_file.h"
#include "draft/workspace.h"

namespace stoplog::draft {

template <typename T>
struct Sourced {
  T value{};
  std::string origin = "default";
};

struct PolicyLimits {
  // Unset: no bound. Times in ms, cpus in thousandths, sizes in bytes.
  Sourced<std::optional<uint64_t>> time, cpu, cpus, memory, pids, files, output,
      disk, inodes;
};

struct Policy {
  PolicyLimits limits;
  // Names of limits without which nothing runs, as if asked for by hand.
  Sourced<std::vector<std::string>> required;
  Sourced<NetMode> net;                     // kNone or kAllow by files
  Sourced<std::vector<std::string>> allow;  // "host" or "host:port"
  Sourced<std::vector<std::string>> hide, mask, read_only;  // globs
  Sourced<std::vector<std::string>> env_pass;
  // observe: the workspace is read-only; hold: commits are refused; gated;
  // auto: what auto_approve names is committed at the end of a run.
  Sourced<std::string> gate_mode;
  Sourced<std::optional<uint64_t>> max_age;                    // ms
  Sourced<std::vector<std::string>> always_ask, auto_approve;  // globs
  Sourced<std::vector<std::string>> dangers;  // codes of risks, raised
  Sourced<std::string> ignored;               // "hold" or "commit"
  // What the undo of older commits may take, in bytes.
  Sourced<std::optional<uint64_t>> undo_size;
  // What a draft keeps of its history: ms, and bytes with what it holds now.
  Sourced<std::optional<uint64_t>> history_age, history_size;
  std::string preset;
  std::vector<std::string> warnings;

  // Everything above but origins and warnings, canonical.
  Json to_json() const;
  std::string digest() const;  // "sha256:…" of to_json()
};

struct PolicyFiles {
  std::optional<TomlFile> user;
  std::optional<TomlFile> workspace;
};

// Absent files are no error; one that is too large (1 MiB), not a regular file
// or reached through a symlink is.
Result<PolicyFiles> read_policy_files(const Layout& layout,
                                      const Workspace* workspace);
// kUsage for an unknown preset.
Result<Policy> make_policy(const PolicyFiles& files, std::string_view preset);

// "host" or "host:port" by a strict grammar.
Result<NetRule> parse_net_rule(std::string_view text);

// Names of the built-in presets and of those in the user's file.
std::vector<std::string> preset_names(const PolicyFiles& files);

}  // namespace stoplog::draft
