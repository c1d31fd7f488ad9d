// SPDX-License-Identifier: Apache-2.0
// What the real tree's git repository knows of its files: ignored, tracked,
// restorable. Asked of libgit2, read-only, on the real tree alone, never on
// anything that a draft holds; it runs no filter, hook or helper.
//
// Opening never fails: without a repository (or without libgit2) nothing is
// ignored and nothing can be restored, which is the careful answer. Calls may
// come from several threads; they take turns.
#pragma once

#include <memory>
#include <string>

#include "base/relpath.h"
#include "diff/content_hash.h"

namespace stoplog::diff {

class GitFacts {
 public:
  // `root` is an absolute path; empty: no repository. Loads libgit2 only when
  // there is something to ask.
  explicit GitFacts(std::string root);
  ~GitFacts();
  GitFacts(const GitFacts&) = delete;
  GitFacts& operator=(const GitFacts&) = delete;

  // By the rules of the real tree's .gitignore files, .git/info/exclude and
  // core.excludesFile; what HEAD tracks is not ignored.
  bool is_ignored(const RelPath& path, bool is_directory);
  // The topmost ignored directory above `path`, with a slash; else the
  // directory it is in, or its own name at the top.
  std::string group_of(const RelPath& path);
  // Whether HEAD has exactly this content at exactly this path.
  bool is_restorable(const RelPath& path, const GitId& blob);
  // Whether HEAD has a file of this path, whatever its content.
  bool is_tracked(const RelPath& path);
  bool has_repository();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace stoplog::diff
