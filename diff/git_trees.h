// SPDX-License-Identifier: Apache-2.0
// Trees and commits of a repository, read within one budget: some are kept,
// since neighbours are asked for one after the other.
//
//   GitTrees trees(objects, format);
//   std::string tree = TRY(trees.commit(id)).tree;
//   auto entry = TRY(trees.find(tree, "src/a.c"));
//
// Errors are those of GitObjects::read(). Borrows the objects. One thread.
#pragma once

#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "diff/git_object.h"
#include "diff/git_objects.h"

namespace stoplog::diff {

class GitTrees {
 public:
  using Entries = std::shared_ptr<const std::vector<TreeEntry>>;
  GitTrees(GitObjects& objects, ObjectFormat format)
      : objects_(objects), format_(format) {}

  Result<Entries> tree(const std::string& id);
  Result<Commit> commit(const std::string& id);
  // The commit that a ref's id stands for, through tags.
  struct Peeled {
    std::string type, id;
  };
  Result<Peeled> peel(const std::string& id);
  Result<std::optional<TreeEntry>> find(const std::string& tree,
                                        std::string_view path);
  Result<std::string> blob(const std::string& id, uint64_t limit);

  // Whether one of `refs` (ids, the likeliest first) reaches this commit of the
  // real repository, as far as a bounded look back sees.
  bool is_reached(const std::vector<std::string>& refs, const std::string& id);

 private:
  GitObjects& objects_;
  ObjectFormat format_;
  uint64_t left_ = kReadBudget;
  std::unordered_map<std::string, Entries> kept_;
  size_t kept_bytes_ = 0;
  bool looked_back_ = false;
  std::set<std::string> reached_;
};

}  // namespace stoplog::diff
