// SPDX-License-Identifier: Apache-2.0
#include "draft/held_drift.h"

#include <set>
#include <utility>

namespace stoplog::draft {
namespace {

// More than that is told at once: memory is bounded, whatever happens outside.
constexpr size_t kMostHeld = 10'000;

}  // namespace

void HeldDrift::commit_due() {
  std::lock_guard lock(mutex_);
  state_ = State::kDue;
}

HeldDrift::Notes HeldDrift::noted(const fs::DriftNote& note) {
  std::lock_guard lock(mutex_);
  if (state_ == State::kNone || held_.size() >= kMostHeld) return {note};
  held_.push_back(note);
  return {};
}

HeldDrift::Notes HeldDrift::marked() {
  std::lock_guard lock(mutex_);
  if (std::exchange(state_,
                    state_ == State::kDue ? State::kMarked : State::kNone) ==
      State::kDue)
    return {};
  return std::exchange(held_, {});
}

HeldDrift::Notes HeldDrift::committed(
    const std::vector<fs::BaseChange>& changes) {
  std::set<RelPath> ours;
  for (const fs::BaseChange& change : changes) ours.insert(change.path);
  Notes left = all();
  std::erase_if(left, [&](const fs::DriftNote& note) {
    return ours.contains(note.path) || ours.contains(note.origin);
  });
  return left;
}

HeldDrift::Notes HeldDrift::all() {
  std::lock_guard lock(mutex_);
  state_ = State::kNone;
  return std::exchange(held_, {});
}

}  // namespace stoplog::draft
