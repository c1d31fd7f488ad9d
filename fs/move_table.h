// SPDX-License-Identifier: Apache-2.0
// MoveTable: where the real tree moved things to, for any number of moves and
// paths: the innermost one above a path counts. The cost of a question is the
// number of different lengths among the old paths, not the number of moves.
//
//   moves.add("src", "lib");
//   moves.rebased("src/a.c");  // "lib/a.c"; none where nothing moved
#pragma once

#include <functional>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>

#include "fs/state.h"

namespace stoplog::fs {

class MoveTable {
 public:
  void add(const std::string& from, const std::string& to) {
    moves_.emplace(from, to);
    lengths_.insert(from.size());
  }
  std::optional<std::string> rebased(const std::string& path) const {
    for (auto at = lengths_.lower_bound(path.size()); at != lengths_.end();
         ++at) {
      if (*at < path.size() && path[*at] != '/') continue;
      auto move = moves_.find(std::string_view(path).substr(0, *at));
      if (move != moves_.end()) return move->second + path.substr(*at);
    }
    return std::nullopt;
  }

 private:
  std::unordered_map<std::string, std::string, NameHash, std::equal_to<>>
      moves_;
  std::set<size_t, std::greater<>> lengths_;  // lower_bound: this or shorter
};

}  // namespace stoplog::fs
