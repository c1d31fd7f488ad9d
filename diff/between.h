// SPDX-License-Identifier: Apache-2.0
// What happened between two moments of a draft (`diff --from MARK --to MARK`),
// as a View whose base is the first and whose draft is the second. Either may
// be the older one.
//
//   auto view = view_between(at_first, at_second);
//   ChangeSet set = TRY(build_change_set(*view, options));
//
// Both stand over the same real tree; what neither touched is not looked at.
// Moves of what came from the real tree are known; a file that the draft made
// itself and then moved is told by its content (diff/guess_moves.h).
#pragma once

#include <memory>

#include "fs/view.h"

namespace stoplog::diff {

std::unique_ptr<fs::View> view_between(std::shared_ptr<const fs::View> from,
                                       std::shared_ptr<const fs::View> to);

}  // namespace stoplog::diff
