// SPDX-License-Identifier: Apache-2.0
// Risks that lie in how a new name is spelled: characters that a reader does
// not see, letters of two alphabets, blanks that look like the columns of a
// list, names that are ".git" on a file system that folds or drops characters.
// Parts of a path that the real tree has are not new. Pure.
#pragma once

#include <vector>

#include "diff/change_set.h"

namespace stoplog::diff {

void add_spelling_risks(const Change& change, const fs::View& view,
                        std::vector<Risk>& risks);

}  // namespace stoplog::diff
