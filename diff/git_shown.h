// SPDX-License-Identifier: Apache-2.0
// Whether the draft's work tree shows what an entry of a git tree or index has:
// the same content and mode at the same place, where a review shows it.
//
//   ShownFiles files({view, &facts, work_tree, format});
//   files.shows("src/a.c", 0100644, id)
//
// Paths are relative to the work tree. Files that git ignores are in no review
// and never count as shown; a submodule is when its HEAD is what the entry
// names and the real tree knows its repository, whose own row tells the rest.
// Hashes at most kHashBudget bytes: is_spent() says that answers are then no.
// Borrows everything. One thread.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "diff/git_facts.h"
#include "diff/git_index.h"
#include "fs/view.h"

namespace stoplog::diff {

inline constexpr uint64_t kHashBudget = 512ull << 20;

// `text`, taken from `directory`, as a path of the workspace; unset when it is
// absolute or leads out of it.
std::optional<RelPath> resolve_beneath(const RelPath& directory,
                                       std::string_view text);

class ShownFiles {
 public:
  struct Place {
    const fs::View& view;
    GitFacts* facts = nullptr;         // unset: nothing is ignored
    std::optional<RelPath> work_tree;  // unset: not in this workspace
    ObjectFormat format = ObjectFormat::kSha1;
  };
  explicit ShownFiles(Place place) : place_(std::move(place)) {}

  bool shows(const std::string& path, uint32_t mode, const std::string& id);
  // Whether the real tree's file there has this content, too.
  bool is_real(const std::string& path, const std::string& id);
  // What is there, of whatever kind.
  std::optional<fs::NodeState> state(const std::string& path) const;
  // From the workspace's top.
  std::string full(const std::string& path) const;
  bool is_spent() const { return spent_; }

 private:
  struct Ids {
    std::string as_is, with_lf;  // hex; the second for what has CR LF
  };
  std::optional<RelPath> place_of(const std::string& path) const;
  const Ids& ids_of(const std::string& path, const fs::NodeState& state);
  Ids hash(const fs::NodeState& state);
  std::string blob_id(std::string_view text) const;
  std::optional<std::string> text_at(const RelPath& path, uint64_t limit) const;
  std::optional<RelPath> repository_at(const RelPath& path) const;
  std::optional<std::string> submodule_head(const RelPath& path) const;

  Place place_;
  std::map<std::string, Ids> known_;
  uint64_t left_ = kHashBudget;
  bool spent_ = false;
};

}  // namespace stoplog::diff
