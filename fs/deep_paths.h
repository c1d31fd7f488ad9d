// SPDX-License-Identifier: Apache-2.0
// Directories in directories have as many bytes of path as the square of their
// depth. What lies beneath a path longer than kDeepPath, four times what a
// program can name, is counted with the directory there instead of told.
//
//   DeepPaths deep(state);
//   if (deep.folds(link)) continue;   // counted
//   deep.folded()                     // directory -> names beneath it
//
// The cost of all names together follows their number, however deep they are.
// Borrows the state, which must not change; one thread.
#pragma once

#include <cstdint>
#include <map>
#include <unordered_map>

#include "fs/state.h"

namespace stoplog::fs {

inline constexpr uint64_t kDeepPath = 16384;

class DeepPaths {
 public:
  explicit DeepPaths(const State& state) : state_(state) {
    places_[kRootSerial] = {};
  }
  bool folds(const Link& link);
  const std::map<Serial, uint64_t>& folded() const { return folded_; }

 private:
  struct Place {
    uint64_t length = 0;  // of the path
    Serial top = 0;       // the first directory on the way that is too deep
  };
  Place place(Serial directory);

  const State& state_;
  std::unordered_map<Serial, Place> places_;
  std::map<Serial, uint64_t> folded_;
};

}  // namespace stoplog::fs
