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

// A file as a commit or the index has it, where no file under review is it.
struct UnreviewedFile {
  std::string path;   // from the workspace's top
  std::string where;  // "main", "index"
  // What the draft's work tree has there, and what the commit has; unset:
  // nothing. Of a large one, or after many, `stored` has no content.
  std::optional<fs::NodeState> shown, stored;
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
  // What commits and index have beside the files under review (git_tips.h): the
  // first hundred, and how many; what could not be compared; how many commits
  // are new, and names that only those between have.
  std::vector<UnreviewedFile> unreviewed;
  uint64_t unreviewed_count = 0;
  // Files under review that these bring with them, as they are shown: who
  // takes the commits takes these, sorted, from the workspace's top.
  std::vector<std::string> carried;
  // Of these, the user's own that git did not have; the first twenty.
  std::vector<std::string> untracked;
  std::vector<std::string> unread;  // sentences
  uint64_t commits = 0;
  std::vector<std::string> passing;
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
