// SPDX-License-Identifier: Apache-2.0
#include "diff/select.h"

#include <algorithm>

namespace stoplog::diff {

bool is_selected(const Change& change, const std::vector<RelPath>& paths) {
  if (paths.empty()) return true;
  return std::any_of(paths.begin(), paths.end(), [&](const RelPath& path) {
    return change.path.is_within(path) ||
           (change.from && change.from->is_within(path)) ||
           (change.is_moved_directory() && path.is_within(change.path));
  });
}

bool is_inside_git(const RelPath& path) {
  std::string_view text = path.str();
  for (size_t at = text.find(".git/"); at != std::string_view::npos;
       at = text.find(".git/", at + 1))
    if (at == 0 || text[at - 1] == '/') return true;
  return false;
}

bool is_inside_git(const Change& change) {
  return change.git != nullptr || is_inside_git(change.path);
}

}  // namespace stoplog::diff
