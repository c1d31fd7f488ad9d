// SPDX-License-Identifier: Apache-2.0
// Programs that the user's PATH would find in the workspace before another of
// the same name: an active virtual environment, `PATH=$PWD/bin:$PATH`, a "." in
// it. Who types `git` there starts what the draft has put into that directory.
// As rules, one for each such name that the draft has.
//
// Read is PATH of this process, which is the reviewer's. A relative directory
// of it is taken for one beneath the workspace's top.
#pragma once

#include <string>
#include <vector>

#include "diff/change_set.h"

namespace stoplog::diff {

std::vector<PolicyRule> rules_of_path(const fs::View& view,
                                      const std::string& real_root);

}  // namespace stoplog::diff
