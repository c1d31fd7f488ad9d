// SPDX-License-Identifier: Apache-2.0
// Folds the changes inside git directories into one row each.
//
//   for (GitParts& git : take_git_parts(view, changes)) ... examine git.parts
//   ...
//     if (auto row = TRY(fold_git(context, std::move(git)))) …
//
// Hooks, configuration, attributes and info stay changes of their own.
#pragma once

#include <optional>
#include <vector>

#include "diff/git_facts.h"
#include "diff/git_meta.h"

namespace stoplog::diff {

struct GitParts {
  RelPath directory;  // ".git", "vendor/lib/.git", ".git/modules/lib"
  std::vector<Change> parts;
};

// Removes them from `changes`, which are in order of path and stay so.
std::vector<GitParts> take_git_parts(const fs::View& view,
                                     std::vector<Change>& changes);

struct FoldContext {
  const fs::View& view;
  std::string real_root;      // absolute; empty: read through the view
  GitFacts* facts = nullptr;  // of what no review shows; unset: all is shown
  bool compare = true;        // commits and index with the files (git_tips.h)
};

// The row; nullopt when nothing in it has a meaning (an index refreshed, a log
// line written).
Result<std::optional<Change>> fold_git(const FoldContext& context,
                                       GitParts git);

}  // namespace stoplog::diff
