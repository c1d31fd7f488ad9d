// SPDX-License-Identifier: Apache-2.0
// Scripts that a package manager runs, in the file that names them: npm's
// package.json, composer.json, deno.json. What was added or changed is named;
// each that runs at install is a danger of its own. In a package that lies in
// node_modules these are fewer, and the rest is for its author. Of package.json
// also the members by which other programs run something, and dependencies that
// come from no registry.
//
// Pure. Reads at most 1 MiB, and says so where it could not read.
#pragma once

#include <string_view>
#include <vector>

#include "diff/change_set.h"

namespace stoplog::diff {

// A package.json in node_modules.
bool is_installed_package(std::string_view path);

// Of files by other names nothing is said. `path` is the workspace's;
// `old_text` is empty for a new one.
std::vector<Risk> risks_of_package(std::string_view path,
                                   std::string_view old_text,
                                   std::string_view new_text);

}  // namespace stoplog::diff
