// SPDX-License-Identifier: Apache-2.0
// A git directory is committed by git's own rules, so that a person may work in
// the real repository while an agent works in the draft's:
//
// - objects, packs and shared parts of an index are only added, never replaced
//   or removed;
// - a ref, and HEAD, is a compare-and-swap under git's own `.lock` file: one
//   that moved in the real repository is left, and said so, alone;
// - the index is replaced only when the real one still has the base's entries;
// - logs and the rest come along where the real file is still the base's.
//
//   GitRule rule(disk, root, row);               // an approved ".git/" row
//   ground.locks = rule.locks();                 // transact() takes them
//   ground.prepare = [&](auto& items, auto& unlocked) {
//     return rule.prepare(items, unlocked); };   // under the locks
//   ... transact() ...; rule.notes()
//
// A git directory that appears or goes as a whole is an ordinary tree.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/relpath.h"
#include "base/result.h"
#include "diff/git_meta.h"
#include "gate/commit_plan.h"
#include "gate/disk.h"

namespace stoplog::gate {

class GitRule {
 public:
  // All borrowed.
  GitRule(const Disk& disk, int root, const diff::Change& row);

  std::vector<RelPath> locks() const;
  // Adds what can be committed to `items`; `unlocked` names lock files that
  // somebody else holds.
  Status prepare(std::vector<Item>& items, const std::set<RelPath>& unlocked);
  const std::vector<std::string>& notes() const { return notes_; }

 private:
  Status prepare_refs(std::vector<Item>& items,
                      const std::set<RelPath>& unlocked);
  Status prepare_ref(std::vector<Item>& items, const diff::RefMove& move);
  Status read_packed();
  Status drop_packed(const std::string& name);
  Status prepare_index(std::vector<Item>& items, const diff::Change& part,
                       const std::set<RelPath>& unlocked);
  Status prepare_plain(std::vector<Item>& items, const diff::Change& part);
  Status add_parents(std::vector<Item>& items) const;
  void tame(std::vector<Item>& items, size_t first);
  Result<std::optional<Standing>> real(const RelPath& path) const;
  Result<std::optional<std::string>> real_text(const RelPath& path,
                                               uint64_t limit) const;
  Result<std::optional<std::string>> current(const std::string& ref);
  RelPath beneath(std::string_view relative) const;
  Node plain_node() const;
  std::string_view relative(const RelPath& path) const;
  bool is_whole() const;

  const Disk& disk_;
  int root_;
  const diff::Change& row_;
  std::vector<std::string> notes_;
  // The real packed-refs, read when first needed, and as it shall be.
  std::optional<std::string> packed_before_, packed_after_;
  Node owner_;
};

// For undo: the lock file that git's protocol wants for a path inside a git
// directory, if any; and whether the path is one of git's objects.
std::optional<RelPath> git_lock_for(const RelPath& path);
bool is_git_object(const RelPath& path);
bool is_git_index(const RelPath& path);
// `git status` rewrites the index all the time without changing what it says.
// True when the real one says the same as `expected`; item.old is then the
// real file. False: it has other entries, and undo leaves it.
Result<bool> follow_index(const Disk& disk, int root, Item& item,
                          std::string_view expected);

}  // namespace stoplog::gate
