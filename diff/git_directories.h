// SPDX-License-Identifier: Apache-2.0
// Which git directory a path is in: a ".git", or one that git keeps inside of
// it for a submodule (".git/modules/NAME", nested ones too) or for another work
// tree (".git/worktrees/NAME"). Inner ones count where the real tree has them:
// what a draft adds beneath modules/ belongs to the ".git" around it.
//
// Asks the real tree once for each directory; one thread. Borrows the view.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "diff/change_set.h"

namespace stoplog::diff {

class GitDirectories {
 public:
  explicit GitDirectories(const fs::View& view) : view_(view) {}
  // Lengths of the change's path: up to and with the first ".git" directory,
  // and up to the git directory that it is in. Both 0: in none.
  struct Place {
    size_t top = 0;
    size_t own = 0;
  };
  Place find(const Change& change);

 private:
  enum class Kind { kAbsent, kDirectory, kRepository };
  Kind kind_of(std::string_view directory);

  const fs::View& view_;
  std::map<std::string, Kind, std::less<>> known_;
};

}  // namespace stoplog::diff
