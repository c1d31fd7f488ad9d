// SPDX-License-Identifier: Apache-2.0
// Which keys of a git configuration file changed, so that a reader is told
// "core.fsmonitor" and not just "config". A reader of git-config(1)'s syntax
// for files that an agent wrote, byte by byte as git reads them; what it cannot
// read counts as changed. Pure.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "diff/change_set.h"

namespace stoplog::diff {

// "section.key" or "section.sub.key" (section and key in lower case) to all of
// its values, in order. From a line on that git could not read, everything is
// the value of "?".
using GitConfig = std::map<std::string, std::vector<std::string>>;
GitConfig parse_git_config(std::string_view text);

// One risk: danger when a key that can run or redirect something was added or
// changed, warn when all changed keys are harmless (user.*, branch.*…).
Risk risk_of_git_config(std::string_view old_text, std::string_view new_text);

}  // namespace stoplog::diff
