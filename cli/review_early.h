// SPDX-License-Identifier: Apache-2.0
// What there is to review before all of it was looked at: a list, the means to
// look at one change by itself, and the decisions that were made before.
//
// What is decided meanwhile is kept by the model and goes into the whole
// review when that is there (ReviewModel::go_on_from): `decisions` are never
// written.
#pragma once

#include <functional>
#include <memory>

#include "cli/review_decisions.h"
#include "cli/review_looked.h"
#include "diff/change_set.h"

namespace stoplog::cli {

using LookAtOne = decltype(diff::Early::look);

struct EarlyList {
  diff::ChangeSet set;
  LookAtOne look;
  std::unique_ptr<DecisionStore> decisions;
  Looked looked = {};  // from the last time
};

using TellEarly = std::function<void(EarlyList)>;

}  // namespace stoplog::cli
