// SPDX-License-Identifier: Apache-2.0
// Which directory is the workspace. Nothing here writes; nothing reads a file
// of the workspace.
//
//   Workspace w = TRY(find_workspace({.given = option, .cwd = cwd}));
//   TRY(check_workspace(w, layout, {.force = false}));   // before a new draft
//
// find_workspace() answers for every command. check_workspace() is asked only
// when a draft is to be made: it refuses what would hurt (a home directory, the
// state or runtime directory inside, a mount of ours, the inside of a jail).
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/relpath.h"
#include "base/result.h"
#include "draft/layout.h"

namespace stoplog::draft {

struct Workspace {
  std::string path;  // absolute, symlinks resolved
  // Which directory it is; of one that is made in its place, ext4 gives the
  // same number again. Not the device, which a restart may number anew.
  uint64_t ino = 0;
  int64_t born_ns = 0;  // 0: not known
  bool git = false;     // its top holds .git
  // Where the user stands, when that is inside the workspace.
  std::optional<RelPath> cwd;
};

struct WorkspaceQuery {
  std::optional<std::string> given;  // --workspace
  std::string cwd = ".";
};

Result<Workspace> find_workspace(const WorkspaceQuery& query);

struct WorkspaceCheck {
  bool force = false;  // allow a home directory
  // A workspace of another open draft that this one must not overlap.
  std::optional<std::string> other;
};
Status check_workspace(const Workspace& workspace, const Layout& layout,
                       const WorkspaceCheck& check);

// True inside a stoplog jail.
bool inside_jail();
// True when one of the two absolute paths is the other or lies beneath it.
bool overlaps(std::string_view a, std::string_view b);

// A PATH argument as a path of the workspace: relative to the current
// directory when that is in it, else to its top; absolute ones must lie in it.
// Lexical: ".." is taken out, symlinks are not followed.
Result<RelPath> workspace_path(const Workspace& workspace,
                               std::string_view argument);

}  // namespace stoplog::draft
