// SPDX-License-Identifier: Apache-2.0
// `run --dry-run`: everything that would hold the command, as text: the mount
// plan, the system call policy, Landlock, the environment, the limits. Nothing
// is made: not even a draft.
#pragma once

#include <string>

#include "base/result.h"
#include "cli/run_options.h"
#include "draft/layout.h"
#include "draft/workspace.h"

namespace stoplog::cli {

Result<std::string> dry_run_text(const draft::Workspace& workspace,
                                 const draft::Layout& layout,
                                 const RunPlan& plan);

}  // namespace stoplog::cli
