// SPDX-License-Identifier: Apache-2.0
// What a path inside a git directory is to git, by its name alone; and the
// texts of the real repository, read without following anything.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/relpath.h"
#include "base/result.h"
#include "diff/git_split_index.h"

namespace stoplog::gate {

// Relative to the git directory that it is in, a submodule's or another work
// tree's included; empty: none.
std::string_view within_git(const RelPath& path);
// That directory.
RelPath git_directory_of(const RelPath& path);

// Of a path relative to its git directory.
bool is_git_ref(std::string_view relative);
bool is_shared_index(std::string_view relative);
// What git writes down for people, and nobody's work: logs, last messages.
bool is_git_note(std::string_view relative);

// The lock file that git's protocol wants for a path, if any.
std::optional<RelPath> git_lock_for(const RelPath& path);
bool is_git_object(const RelPath& path);
bool is_git_index(const RelPath& path);
// A commit keeps what it wrote there, for its undo to compare with.
bool is_kept_for_undo(const RelPath& path);

Result<std::optional<std::string>> text_beneath(int root, const RelPath& path,
                                                uint64_t limit);
// How the real repository names its objects.
Result<diff::ObjectFormat> format_beneath(int root, const RelPath& git);
diff::SharedIndex shared_beneath(int root, const RelPath& git);

}  // namespace stoplog::gate
