// SPDX-License-Identifier: Apache-2.0
// What an undo makes of its items inside git directories, by what they mean: a
// person goes on working with git after a commit, and none of that is an edit
// of what the commit wrote.
//
//   GitUndo git(disk, root, objects);
//   ground.locks = GitUndo::locks(items);
//   TRY(git.prepare(items, notes));     // under the locks; drops and changes
//
// - a ref that git packed since is taken back where it is now; a ref that was
//   taken out of packed-refs comes back as a file of its own;
// - the index is compared by its entries;
// - logs and messages that git wrote since stay, and so does a directory in
//   which something else is by now;
// - a ref that points elsewhere by now is drift, as ever.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "base/relpath.h"
#include "base/result.h"
#include "gate/commit_plan.h"
#include "gate/disk.h"
#include "snapshot/objects.h"

namespace stoplog::gate {

class GitUndo {
 public:
  // All borrowed.
  GitUndo(const Disk& disk, int root, snapshot::ObjectStore& objects)
      : disk_(disk), root_(root), objects_(objects) {}

  static std::vector<RelPath> locks(const std::vector<Item>& items);
  Status prepare(std::vector<Item>& items, std::vector<std::string>& notes);

 private:
  // The real packed-refs of one git directory, and what is to leave it.
  struct Packed {
    std::string text;
    std::map<std::string, std::string> refs;
    std::set<std::string> drop;
    std::map<std::string, std::string> before;  // as the commit found it
  };
  // False: the item is not to be done.
  Result<bool> follow(Item& item, std::vector<std::string>& notes);
  Result<bool> follow_index(Item& item, std::vector<std::string>& notes);
  Result<bool> follow_ref(Item& item);
  Result<bool> follow_packed(Item& item);
  Result<bool> is_as_left(const Item& item) const;
  Result<Packed*> packed_of(const RelPath& git);
  Status read_before(const Item& item);
  Result<std::optional<Standing>> real(const RelPath& path) const;
  Status bring_back(std::vector<Item>& items, Item ref) const;
  Status drop_packed(std::vector<Item>& items);
  Status keep_directories(std::vector<Item>& items) const;
  Status add_parents(std::vector<Item>& items) const;

  const Disk& disk_;
  int root_;
  snapshot::ObjectStore& objects_;
  std::map<RelPath, Packed> packed_;
  std::vector<Item> more_;  // refs that come back as files
};

// A text file in the place of `old`, with the attributes of `like`.
Item text_item(const RelPath& path, const std::optional<Node>& old, Node like,
               std::string text);
// packed-refs without some of its refs; nullopt: it has none of them.
std::optional<std::string> without_refs(std::string_view packed,
                                        const std::set<std::string>& refs);

}  // namespace stoplog::gate
