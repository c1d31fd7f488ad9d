// SPDX-License-Identifier: Apache-2.0
// The views that `stoplog mount` shows at this moment, of drafts in whatever
// state: one that was committed whole or is not the current one may be mounted.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "cli/context.h"
#include "draft/store.h"

namespace stoplog::cli {

struct ShownView {
  draft::Draft draft;
  std::string mount;
};
enum class Where { kWorkspace, kEverywhere };
Result<std::vector<ShownView>> shown_views(Context& context, Where where);

}  // namespace stoplog::cli
