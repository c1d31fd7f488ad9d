// SPDX-License-Identifier: Apache-2.0
// Which changes of the real tree are drift to be told, and which are our own
// commit's: that one renames files first and tells the draft afterwards.
//
//   held.commit_due();              // `settle`: a commit follows
//   for (auto& n : held.noted(note)) record(n);
//   for (auto& n : held.marked()) record(n);         // at each barrier
//   for (auto& n : held.committed(changes)) record(n);
//
// From commit_due() on notes are kept, and given back by committed() unless the
// commit names their path; when there is none, by the second barrier (the first
// is the commit's own) or by all(). Any thread.
#pragma once

#include <mutex>
#include <vector>

#include "fs/tree_types.h"
#include "fs/view.h"

namespace stoplog::draft {

class HeldDrift {
 public:
  using Notes = std::vector<fs::DriftNote>;
  void commit_due();
  Notes noted(const fs::DriftNote& note);
  Notes marked();
  Notes committed(const std::vector<fs::BaseChange>& changes);
  Notes all();

 private:
  enum class State { kNone, kDue, kMarked };
  std::mutex mutex_;  // protects the following; a leaf
  State state_ = State::kNone;
  Notes held_;
};

}  // namespace stoplog::draft
