// SPDX-License-Identifier: Apache-2.0
#include "fs/deep_paths.h"

#include <vector>

namespace stoplog::fs {

DeepPaths::Place DeepPaths::place(Serial directory) {
  // Up to the first that is known, and down again.
  std::vector<const Held*> way;
  auto known = places_.find(directory);
  for (Serial at = directory; known == places_.end();) {
    const Held* held = state_.find(at);
    if (held == nullptr || held->links.empty()) return {};  // has no path
    way.push_back(held);
    at = held->links.front().parent;
    known = places_.find(at);
  }
  Place place = known->second;
  for (auto it = way.rbegin(); it != way.rend(); ++it) {
    place.length += (*it)->links.front().name.size() + 1;
    if (place.top == 0 && place.length > kDeepPath) place.top = (*it)->serial;
    places_[(*it)->serial] = place;
  }
  return place;
}

bool DeepPaths::folds(const Link& link) {
  Serial top = place(link.parent).top;
  if (top == 0) return false;
  ++folded_[top];
  return true;
}

}  // namespace stoplog::fs
