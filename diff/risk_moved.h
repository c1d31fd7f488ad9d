// SPDX-License-Identifier: Apache-2.0
// Risks of what moved along with a directory: its files have no rows of their
// own, so theirs are told on the directory's. A name that means something at
// the new place (".vscode"), a link that leaves the workspace from there, a
// path that the policy names.
//
// Looks into the directory only where the move can make a difference, and no
// further than kMovedLooked nodes; beyond, everything that could be is said.
#pragma once

#include "diff/change_set.h"

namespace stoplog::diff {

inline constexpr size_t kMovedLooked = 20'000;

// Adds to the rows of moved directories; without DiffOptions::risks to those
// alone whose place in the digest depends on it.
Status assess_moved(ChangeSet& set, const fs::View& view,
                    const DiffOptions& options);

}  // namespace stoplog::diff
