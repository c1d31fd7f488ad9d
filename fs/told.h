// SPDX-License-Identifier: Apache-2.0
// What a commit is known by to the draft that is told of it (Tree::commit_base,
// ToldRecord): whoever cannot know whether the draft was told tells it again,
// and the draft refuses what it has.
#pragma once

#include <cstdint>
#include <ctime>

namespace stoplog::fs {

using CommitId = uint64_t;  // random; 0: none

// A draft that was told of no commit by an id, for its journal is older than
// those, knows it by a mark later than what was reviewed and later than `since`
// (of an undo: the commit that it takes back has the same review).
struct ToldBy {
  CommitId id = 0;
  timespec since{};
};

}  // namespace stoplog::fs
