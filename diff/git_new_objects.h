// SPDX-License-Identifier: Apache-2.0
// The objects that a draft adds to a git directory: whether each is what its
// name says.
//
//   NewObjects objects(view, directory, format);
//   objects.add("objects/ab/cdef…");  // and packs and their indexes
//   objects.check();                  // then forged() and unknown()
//
// Borrows the view. One thread.
#pragma once

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

 private:
  Result<std::optional<fs::NodeState>> state(const std::string& rel) const;
  Verdict check_pack(const std::string& stem);
  void note(Verdict verdict, const std::string& rel);

  const fs::View& view_;
  RelPath directory_;
  ObjectFormat format_;
  std::vector<std::string> loose_;
  std::set<std::string> stems_;  // of packs, without ".pack"
  std::vector<std::string> forged_, unknown_;
  uint64_t left_ = kObjectBudget;
};

}  // namespace stoplog::diff
