// SPDX-License-Identifier: Apache-2.0
// A git directory is committed by git's own rules, so that a person may work in
// the real repository while an agent works in the draft's:
//
// - objects, packs and shared parts of an index are only added, never replaced
//   or removed;
// - a ref, and HEAD, is a compare-and-swap under git's own `.lock` file: one
//   that moved in the real repository is left, and said so, alone;
// - the index is replaced only when the real one still has the base's entries;
// - what git makes again from the objects (commit-graph, multi-pack-index,
//   bitmaps) is left;
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

#include <map>
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
  Status drop_packed(std::vector<Item>& items);
  Result<std::optional<std::string>> in_the_way(const std::string& name);
  struct Loose {
    std::vector<RelPath> files, dirs;
  };
  Result<Loose> loose_beneath(const std::string& name) const;
  Status prepare_index(std::vector<Item>& items, const diff::Change& part,
                       const std::set<RelPath>& unlocked);
  Result<Item> index_item(const diff::Change& part);
  Result<Item> ref_item(const diff::Change& part);
  Result<Item> packed_item(const diff::Change& part);
  Result<Item> whole_item(const diff::Change& part);
  enum class Side { kBase, kDraft };
  Result<std::string> shared_of(Side side, const std::string& name) const;
  Status prepare_plain(std::vector<Item>& items, const diff::Change& part);
  Status add_parents(std::vector<Item>& items);
  void tame(std::vector<Item>& items, size_t first);
  Result<std::optional<Standing>> real(const RelPath& path) const;
  Result<std::optional<std::string>> real_text(const RelPath& path,
                                               uint64_t limit) const;
  Result<std::optional<std::string>> current(const std::string& ref);
  RelPath beneath(std::string_view relative) const;
  Node plain_node() const;
  std::string_view relative(const RelPath& path) const;
  bool is_whole() const;
  bool is_rebuilt(const diff::Change& part) const;

  const Disk& disk_;
  int root_;
  const diff::Change& row_;
  std::vector<std::string> notes_;
  // The real packed-refs, read when first needed.
  std::optional<std::string> packed_;
  std::map<std::string, std::string> packed_refs_;
  std::set<std::string> dropped_;  // refs that go with this commit
  bool packed_moved_ = false;      // one that was packed alone moves
  Node owner_;
};

}  // namespace stoplog::gate
