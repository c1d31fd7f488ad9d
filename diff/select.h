// SPDX-License-Identifier: Apache-2.0
// Which changes a command line's PATHs mean, and which lie inside a git
// directory. Pure.
#pragma once

#include <vector>

#include "diff/change_set.h"

namespace stoplog::diff {

// No paths select everything; a directory selects what lies beneath it, and a
// moved directory's row is selected by paths inside it.
bool is_selected(const Change& change, const std::vector<RelPath>& paths);

// The row of a git directory itself, or a change that is one of its own
// beneath (a hook, its configuration).
bool is_inside_git(const Change& change);
bool is_inside_git(const RelPath& path);

}  // namespace stoplog::diff
