// SPDX-License-Identifier: Apache-2.0
// Rejections for the agent to read: /run/stoplog/rejections inside the jail.
// Told to the daemon that lives now; one that starts later shows what the plan
// says then.
#pragma once

#include "base/result.h"
#include "cli/context.h"
#include "cli/opened.h"

namespace stoplog::cli {

Status tell_rejections(Context& context, const Opened& opened);

}  // namespace stoplog::cli
