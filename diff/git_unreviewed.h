// SPDX-License-Identifier: Apache-2.0
// What a commit or the index has beside the files under review, as changes:
// from what the work tree shows to what is stored. For a patch of it.
#pragma once

#include "diff/git_meta.h"

namespace stoplog::diff {

// By path, each once. What has no content here (too large, a submodule, one of
// many) is left out; GitChange::unreviewed names it.
ChangeSet unreviewed_changes(const GitChange& git);

}  // namespace stoplog::diff
