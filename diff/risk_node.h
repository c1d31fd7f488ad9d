// SPDX-License-Identifier: Apache-2.0
// Risks that lie in what a node is: its type, mode, owner, attributes, link
// target and size, and in what is lost when it is deleted or emptied. Pure.
#pragma once

#include <span>
#include <vector>

#include "diff/risk.h"

namespace stoplog::diff {

void add_node_risks(const Subject& subject, std::vector<Risk>& risks);
std::span<const RuleInfo> node_rules();

// Whether a symlink at `path` leads out of the workspace, by its text alone.
bool leaves_workspace(const RelPath& path, std::string_view target,
                      std::string_view real_root);

}  // namespace stoplog::diff
