// SPDX-License-Identifier: Apache-2.0
// The risks of the one row that stands for a git directory. Pure.
#pragma once

#include <vector>

#include "diff/git_meta.h"
#include "diff/git_new_objects.h"

namespace stoplog::diff {

// git shows the object that it points at in the place of the one it names.
bool is_replacement(const RefMove& ref);

// Gravest first. `row` has its kind and sides.
std::vector<Risk> git_row_risks(const Change& row, const GitChange& git,
                                const NewObjects& objects);

}  // namespace stoplog::diff
