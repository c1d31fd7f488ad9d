// SPDX-License-Identifier: Apache-2.0
// From the journal to a State, at its end or at any position before. Nothing
// on disk changes: who opens a draft for writing cuts torn tails afterwards
// (Journal::resume), and only with the draft's lock.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "fs/state.h"

namespace stoplog::fs {

struct Replayed {
  State state;
  JournalHead head;
  ScanEnd end;
  uint32_t generation = 0;
  uint64_t records = 0;
  uint64_t bytes = 0;  // of all generations that were read
  // Records lost in the middle: the draft opens read-only.
  bool damaged = false;
  std::vector<std::string> notes;  // for people: what was found and done
};

// ENOENT when there is no journal; Code::kInvalid for a position that no
// generation holds any more.
Result<Replayed> replay(int draft_dir, Position until = kEnd);
// For many of one journal. kOwn: of the seals, only those from before what the
// generations go on from.
enum class Seals : uint8_t { kAll, kOwn };
Result<Replayed> replay(Generations& all, Position until, Seals seals);
// One record of a generation with this head: its first may go on from `state`.
Status go_on(const JournalHead& head, const Logged& logged, State& state);

// What commits behind `at` did to the real tree, oldest first. Code::kCorrupt
// when the map of one of them is damaged or gone. `replayed`, when given, is
// what replay(at) gave: its generation is read from there on.
Result<std::vector<BaseMapRecord>> base_maps_since(
    int draft_dir, Position at, const Replayed* replayed = nullptr);

}  // namespace stoplog::fs
