// SPDX-License-Identifier: Apache-2.0
// The commits of a workspace as entries of a timeline, whichever draft made
// them: what `undo` and `show` take by number, also when that draft is gone.
//
//   for (const Json& entry : TRY(commit_entries(context))) ...
//
// Oldest first, n from 1, with the keys that a draft's record has for a commit
// or an undo, and "draft": its name, or its id when it is there no more. Made
// of the commits' own records; one that cannot be read is left out and said.
#pragma once

#include <vector>

#include "base/json.h"
#include "base/result.h"
#include "cli/context.h"

namespace stoplog::cli {

Result<std::vector<Json>> commit_entries(Context& context);
// How many of them no entry of this draft's record tells of. Reads no paths.
Result<uint64_t> commits_of_others(Context& context, const draft::Draft& draft);

}  // namespace stoplog::cli
