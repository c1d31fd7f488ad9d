// SPDX-License-Identifier: Apache-2.0
// The git directory of a workspace whose `.git` is a file that names it: a
// linked work tree, or a submodule. It lies outside, so the jail shows it
// read-only at its own path: status, log and diff work inside, commits do not.
//
//   GitLink link = find_git_link(workspace, {state});
//   if (!link.path.empty()) ...      // to be bound
//
// `.git` is a file of the workspace, which an agent may have written and a
// person approved: it could name any directory. So nothing is shown that does
// not name the workspace in turn (worktrees/NAME/gitdir, or core.worktree), nor
// what has a credential in its configuration. Only looks; never fails.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace stoplog::draft {

struct GitLink {
  std::string path;     // what is to be shown; "": nothing
  std::string refused;  // there is one, and why it is not shown
};
GitLink find_git_link(const std::string& workspace,
                      const std::vector<std::string>& hidden);

// Does this configuration hold a password, a token or a header with one?
bool tells_credential(std::string_view config);

// The value of core.worktree; "" when there is none.
std::string core_worktree(std::string_view config);

}  // namespace stoplog::draft
