// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <map>

#include "diff/git_directories.h"
#include "diff/git_fold.h"
#include "diff/git_sort.h"
#include "diff/risk_names.h"

namespace stoplog::diff {
namespace {

bool stands_for_own_changes(const Change& change) {
  return change.after && change.after->type == fs::Type::kSymlink &&
         !match_beneath(change.path).empty();
}

}  // namespace

std::vector<GitParts> take_git_parts(const fs::View& view,
                                     std::vector<Change>& changes) {
  GitDirectories directories(view);
  std::map<std::string, GitParts> found;
  std::erase_if(changes, [&](Change& change) {
    auto [top, prefix] = directories.find(change);
    const std::string& path = change.path.str();
    // A git directory that moved as a whole is a moved directory; a link in
    // place of hooks/ is what its target is.
    bool own = top == 0 || change.is_moved_directory() ||
               stands_for_own_changes(change) || change.too_deep != 0 ||
               (top < path.size() && is_foreign_git_part(change)) ||
               (top < path.size() &&
                is_own_git_change(std::string_view(path).substr(top + 1)));
    if (own) return false;
    GitParts& git = found[path.substr(0, prefix)];
    git.parts.push_back(std::move(change));
    return true;
  });
  std::vector<GitParts> out;
  for (auto& [directory, git] : found) {
    git.directory = RelPath::parse(directory).value_or(RelPath());
    out.push_back(std::move(git));
  }
  return out;
}

}  // namespace stoplog::diff
