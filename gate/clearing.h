// SPDX-License-Identifier: Apache-2.0
// Before a stage is removed: what lies in it that is somebody else's. Contents
// of files go into the object store; what cannot (a directory, a file that a
// program still writes to) gets a name beside the one it had. All of it is
// named.
//
//   Clearing clearing(ground, disk, record, stages, switcher);
//   TRY(clearing.settle_all(lefts));   // one a step, what that reported
//   clearing.left(); clearing.asides(); clearing.all();
//
// All borrowed. Only afterwards may the stage be removed.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "gate/disk.h"
#include "gate/record.h"
#include "gate/stage.h"
#include "gate/switcher.h"
#include "gate/transaction.h"

namespace stoplog::gate {

class Clearing {
 public:
  Clearing(const Ground& ground, const Disk& disk, const SwitchRecord& record,
           const StageSet& stages, Switcher& switcher)
      : ground_(ground),
        disk_(disk),
        record_(record),
        stages_(stages),
        switcher_(switcher) {}

  Status settle_all(std::vector<std::optional<Left>> lefts);
  // Paths that are not as the commit, or its roll-back, would have them.
  const std::vector<Left>& left() const { return all_; }
  // Saves that have their names, and are kept nevertheless.
  const std::vector<Left>& asides() const { return asides_; }
  std::vector<Left> all() const;

 private:
  // `left` is what the step itself reported: then the slot's content is kept
  // whichever it is, else only when it is neither the old nor the new one.
  Status settle(const LiveOp& live, std::optional<Left> left);
  Status settle_asides();
  Result<bool> is_ours(const LiveOp& live, const sys::Stat& stat, int stage,
                       const std::string& slot);
  Result<Sha256Digest> keep(int fd);
  Result<std::string> put_beside(const LiveOp& live, int stage,
                                 const std::string& slot);

  const Ground& ground_;
  const Disk& disk_;
  const SwitchRecord& record_;
  const StageSet& stages_;
  Switcher& switcher_;
  std::vector<Left> all_, asides_;
};

}  // namespace stoplog::gate
