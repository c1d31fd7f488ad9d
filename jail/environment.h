// SPDX-License-Identifier: Apache-2.0
// The command's environment, built from an allow list: what a terminal, a
// locale and toolchains need, what the policy or --env names, and what is true
// inside (HOME, PATH, USER...). Nothing else of the caller's enters, so tokens
// and agent sockets stay out by default. Pure.
#pragma once

#include <string>
#include <vector>

#include "jail/spec.h"

namespace stoplog::jail {

struct EnvironmentInput {
  std::vector<std::string> caller;  // NAME=VALUE, of the caller
  // NAME (taken from the caller) or NAME=VALUE, by policy and --env. They win
  // over everything else.
  std::vector<std::string> extra;
  std::vector<std::string> path;  // PATH inside, see toolchains.h
  std::string cwd;
  std::string shell;  // "" : /bin/sh
};

// Sorted by name, each name once.
std::vector<std::string> build_environment(const JailSpec& spec,
                                           const EnvironmentInput& input);
// Whether NAME passes by itself.
bool passes(std::string_view name);

}  // namespace stoplog::jail
