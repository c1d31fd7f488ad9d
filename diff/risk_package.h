// SPDX-License-Identifier: Apache-2.0
// Scripts that a package manager runs, in the file that names them: npm's
// package.json, composer.json, deno.json. Each entry that was added or changed
// is a risk of its own, named; those that run at install are dangers.
//
// Pure. Reads at most 1 MiB, and says so where it could not read.
#pragma once

#include <string_view>
#include <vector>

#include "diff/change_set.h"

namespace stoplog::diff {

// `name` is the file's; of other files nothing is said. `old_text` is empty for
// a new one.
std::vector<Risk> risks_of_package(std::string_view name,
                                   std::string_view old_text,
                                   std::string_view new_text);

}  // namespace stoplog::diff
