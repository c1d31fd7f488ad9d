// SPDX-License-Identifier: Apache-2.0
// Files of the workspace that the user's own git configuration has git run or
// obey: hooks in a directory of the tree (core.hooksPath), filters, text
// converters, editors, aliases, files that it includes; and what his hooks in
// .git/hooks are links to, or run. As rules, for the draft may change what
// these names stand for without touching the configuration.
//
//   rules = rules_of_git_config(view, real_root);
//
// Read are the real tree's .git/config and the user's global configuration,
// with what they include, up to 32 files, and 40 hooks; never what the draft
// has. Commands are not parsed as a shell does it: a word that is a path of the
// tree counts, in a hook one that is run.
// What cannot be read names nothing.
#pragma once

#include <string>
#include <vector>

#include "diff/change_set.h"

namespace stoplog::diff {

std::vector<PolicyRule> rules_of_git_config(const fs::View& view,
                                            const std::string& real_root);

}  // namespace stoplog::diff
