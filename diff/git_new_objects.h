// SPDX-License-Identifier: Apache-2.0
// The objects that a draft adds to a git directory: whether each is what its
// name says, and what they are.
//
//   NewObjects objects(view, directory, format);
//   objects.add("objects/ab/cdef…");  // and packs and their indexes
//   objects.check();                  // then doubts(); takes from the budget
//   objects.read(id)                  // of what is loose, or in a new pack
//
// Borrows the view. One thread.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "diff/git_pack.h"

namespace stoplog::diff {

class NewObjects {
 public:
  NewObjects(const fs::View& view, RelPath directory, ObjectFormat format)
      : view_(view), directory_(std::move(directory)), format_(format) {}

  // `rel` is relative to the git directory.
  void add(std::string_view rel);
  void check();
  // Names, in order: of what is not what it says, and of what was too much to
  // look at.
  const std::vector<std::string>& forged() const { return forged_; }
  const std::vector<std::string>& unknown() const { return unknown_; }

  // By its hex name. nullopt: neither loose in the draft nor in a new pack.
  Result<std::optional<GitObject>> read(std::string_view id);

 private:
  Result<std::optional<fs::NodeState>> state(const std::string& rel) const;
  Verdict check_pack(const std::string& stem);
  void note(Verdict verdict, const std::string& rel);

  const fs::View& view_;
  RelPath directory_;
  ObjectFormat format_;
  std::vector<std::string> loose_;
  std::set<std::string> stems_;  // of packs, without ".pack"
  std::map<std::string, Pack> packs_;
  std::vector<std::string> forged_, unknown_;
  uint64_t left_ = kObjectBudget;
  uint64_t left_to_read_ = kObjectBudget / 4;
};

}  // namespace stoplog::diff
