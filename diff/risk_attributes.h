// SPDX-License-Identifier: Apache-2.0
// Risks that lie in access lists and other extended attributes: no patch shows
// them. What a new node has from its directory's default list, as every file
// system gives it, is none. Pure but for a look at the directory.
#pragma once

#include <span>
#include <vector>

#include "diff/risk.h"

namespace stoplog::diff {

void add_attribute_risks(const Subject& subject, std::vector<Risk>& risks);
// Whether a new directory brings attributes of its own: a row, then, even when
// what is in it tells of it.
bool brings_attributes(const Change& change, const fs::View& view);
std::span<const RuleInfo> attribute_rules();

}  // namespace stoplog::diff
