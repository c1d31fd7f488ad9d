// SPDX-License-Identifier: Apache-2.0
// Copy-and-delete told as what it is, a move: a deleted file and an added one
// with the very same bytes become one rename. Only where there is no doubt
// which belongs to which; nothing is guessed from similarity. Reads only files
// of equal size, and only when their hashes are not there yet.
#pragma once

#include <vector>

#include "diff/change_set.h"

namespace stoplog::diff {

Status guess_moves(std::vector<Change>& changes);

}  // namespace stoplog::diff
