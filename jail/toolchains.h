// SPDX-License-Identifier: Apache-2.0
// Toolchains of the caller's PATH, inside. Each directory of PATH outside the
// system ones is bound read-only at its own path, together with the roots that
// one table names for it (a pyenv shim is nothing without its versions), so
// `python3`, `node` and `cargo` are the same inside as outside. Never a
// directory that holds credentials as well: ~/.cargo/bin, not ~/.cargo. Pure
// but for the probe that says what exists.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "jail/mount_plan.h"
#include "jail/spec.h"

namespace stoplog::jail {

struct ToolchainInput {
  std::string path;       // the caller's PATH
  std::string home;       // the caller's HOME
  std::string workspace;  // its entries come with the workspace itself
  // No bind may be one of these, contain one, or lie within one.
  std::vector<std::string> hidden;
};

struct ToolchainPlan {
  std::vector<Bind> binds;
  std::vector<std::string> path;      // PATH inside
  std::vector<std::string> left_out;  // entries that exist and are not there
};

using PathProbe = std::function<PathKind(const std::string&)>;
ToolchainPlan plan_toolchains(const ToolchainInput& input,
                              const PathProbe& probe);
// What is at a path, links followed.
PathKind probe_path(const std::string& path);

// True when `path` is `top` or lies beneath it. Both absolute and normal.
bool is_within(const std::string& path, const std::string& top);

}  // namespace stoplog::jail
