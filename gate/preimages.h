// SPDX-License-Identifier: Apache-2.0
// What a commit replaced or removed, from its stage into one pack of the object
// store, for `undo`. Small files are read, hashed and compressed on several
// threads, and stand in the pack in the order of the steps.
//
//   TRY(pack_preimages(ground, disk, record, stages, untouched, lost));
//
// The pack is named, not synced: a syncfs follows. A file that is not the base
// any more, or that somebody writes to, is Code::kDrift.
#pragma once

#include <set>

#include "base/relpath.h"
#include "base/result.h"
#include "gate/disk.h"
#include "gate/record.h"
#include "gate/stage.h"
#include "gate/transaction.h"

namespace stoplog::gate {

// Its slot has the old thing after the step.
bool holds_old(const LiveOp& live);

// In a recovery: what somebody removed from the stage after the step.
struct LostPreimages {
  std::set<uint32_t> slots;
  std::vector<Left> left;  // those that are not in the object store either
};
// Deletions of which undo could give back nothing become untouched.
Result<LostPreimages> find_lost(const Ground& ground, const Disk& disk,
                                const SwitchRecord& record,
                                const StageSet& stages,
                                std::set<RelPath>& untouched);

// Without the slots that are lost.
Status pack_preimages(const Ground& ground, const Disk& disk,
                      const SwitchRecord& record, const StageSet& stages,
                      const std::set<RelPath>& untouched,
                      const std::set<uint32_t>& lost);

}  // namespace stoplog::gate
