// SPDX-License-Identifier: Apache-2.0
// Links of the real tree that stand where something runs unasked: of
// ".vscode -> config/vscode" the files have other names, and the table of names
// says nothing of them. As rules, for what the links lead to.
//
// Read are the workspace's top and its hidden directories, bounded; a link that
// the draft makes or changes has a row of its own.
#pragma once

#include <string>
#include <vector>

#include "diff/change_set.h"

namespace stoplog::diff {

std::vector<PolicyRule> rules_of_links(const std::string& real_root);

// A glob that is this path and all beneath it.
std::string glob_of(const RelPath& path);

}  // namespace stoplog::diff
