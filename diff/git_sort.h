// SPDX-License-Identifier: Apache-2.0
// What a path inside a git directory is, by its name alone: what is a change of
// its own, what is told by the directory's one row, and what no commit takes.
// Pure; any thread.
#pragma once

#include <string_view>

#include "diff/change_set.h"

namespace stoplog::diff {

enum class GitSort {
  kIndex,
  kRef,  // HEAD too
  kPackedRefs,
  kObject,       // a loose one
  kPack,         // "*.pack"
  kPackIndex,    // "*.idx"
  kRebuilt,      // git makes it again from the rest, and trusts what it says
  kStashLog,     // that is where `git stash` has all but the last
  kBookkeeping,  // logs, last messages: nothing of their own to tell
  kOther
};

// `rel` is relative to the git directory. What lies in the objects of a
// submodule that is new counts as the directory's own.
GitSort git_sort(std::string_view rel);

// Of "modules/NAME/objects/…" the end from "objects/" on; else `rel`.
std::string_view within_objects(std::string_view rel);

// What git runs or obeys.
bool is_own_git_change(std::string_view rel);

// git makes files and directories only: through a link it writes elsewhere.
bool is_foreign_git_part(const Change& change);

}  // namespace stoplog::diff
