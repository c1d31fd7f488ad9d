// SPDX-License-Identifier: Apache-2.0
// Risks that lie in what a node is: its type, mode, owner, attributes, link
// target and size, and in what is lost when it is deleted or emptied. Pure.
#pragma once

#include <span>
#include <vector>

#include "diff/risk.h"

namespace stoplog::diff {

// Its owner may not look into it or change it. A new directory that is has a
// row, whatever is in it: an undo of an ordinary user's fails there.
bool is_locked(const fs::NodeState& state);
void add_node_risks(const Subject& subject, std::vector<Risk>& risks);
std::span<const RuleInfo> node_rules();

}  // namespace stoplog::diff
