// SPDX-License-Identifier: Apache-2.0
// A git directory compared by meaning, without running git: the index by its
// entries (a refresh of stat data is no change), refs and HEAD by where they
// point, objects and packs counted. Everything is read from the view by small
// bounded readers (git_index, git_refs, git_object); what they cannot read is
// said in `unreadable`, never guessed.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "diff/change_set.h"

namespace stoplog::diff {

// A ref that moved. Targets are 40 or 64 hex digits, or "ref: refs/heads/x" for
// a symbolic one; unset when the ref did not exist or is gone.
struct RefMove {
  std::string name;  // "HEAD", "refs/heads/main"
  std::optional<std::string> from;
  std::optional<std::string> to;
  // Subjects of the commits that it gained, newest first; as far as they are
  // loose objects, at most 20, and 400 of all refs together.
  std::vector<std::string> subjects;
};

struct GitChange {
  // HEAD first, then its branch, then replacements, then by name.
  std::vector<RefMove> refs;
  bool index_changed = false;
  uint64_t index_added = 0, index_modified = 0, index_removed = 0;
  // Files that git was told not to look at, by new flags of the index.
  uint64_t index_hidden = 0;
  std::string first_hidden;
  uint64_t objects_added = 0, objects_removed = 0;
  uint64_t packs_added = 0, packs_removed = 0;
  // Files that have no meaning of their own (logs, ORIG_HEAD, FETCH_HEAD…).
  uint64_t bookkeeping = 0;
  // Everything else that changed and is not a change of its own.
  std::vector<RelPath> others;
  std::vector<std::string> unreadable;  // sentences
  // The plain changes beneath the git directory, by path: what a commit of
  // this row carries out, by git's own rules for each.
  std::vector<Change> parts;
  // SHA-256 over the meaning; takes the place of content in the digest.
  Sha256Digest meaning{};
  std::string summary() const;  // "main 1234567..89abcde, 3 objects, index"
};

}  // namespace stoplog::diff
