// SPDX-License-Identifier: Apache-2.0
// A draft reviewed by a person: what `review`, `run --review` and `approve -p`
// have in common.
//
//   return review_draft(context, draft);              // the exit code
//   return approve_by_hunk(context, draft, paths);
//
// Both look at the draft as it is at that moment; what an agent writes
// meanwhile stays held and is not shown. Decisions go to the draft's plan and
// ledger, rejections to where the agent reads them. The draft is not locked
// while a person thinks: content that changed under the review is found by its
// hash and not shown as something else.
#pragma once

#include <vector>

#include "base/relpath.h"
#include "base/result.h"
#include "cli/context.h"
#include "draft/store.h"

namespace stoplog::cli {

Result<int> review_draft(Context& context, const draft::Draft& draft);
Result<int> approve_by_hunk(Context& context, const draft::Draft& draft,
                            const std::vector<RelPath>& paths);

}  // namespace stoplog::cli
