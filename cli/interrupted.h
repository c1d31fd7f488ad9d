// SPDX-License-Identifier: Apache-2.0
// What a killed commit or undo left half-way, for commands that look at a
// workspace without opening a draft over it: a draft that was committed whole
// is nobody's current one, and its undo may have been killed.
//
//   TRY(finish_interrupted(context));
//
// Finished or taken back as by open_draft(), which does it by itself, and said;
// the draft whose it was is told. A commit that is still at work is left to
// itself, and nobody waits for it. Where nothing waits it costs a few opens,
// and no directory is made.
#pragma once

#include "base/fd.h"
#include "base/result.h"
#include "cli/context.h"

namespace stoplog::cli {

Status finish_interrupted(Context& context);

// The gate's directory of the workspace; no fd where no commit was ever made.
Result<Fd> find_commits(Context& context);

}  // namespace stoplog::cli
