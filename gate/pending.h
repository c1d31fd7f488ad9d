// SPDX-License-Identifier: Apache-2.0
// The commit under way, as it stands on disk, and how it is brought to an end:
// forward, back, or tidied up. Used by the transaction that runs and by
// recovery after one that died. One directory, state/pending:
//
//   intent   a commit began         switch  everything is staged and synced
//   abort    it is being taken back stage/  the stage, unless in the workspace
//   abort.ready  the same, before: a full disk may refuse it later
//   locks    git's lock files that are, or are about to be, ours
//
// All under the lock of the workspace's root.
#pragma once

#include <optional>
#include <set>
#include <vector>

#include "base/fd.h"
#include "base/result.h"
#include "gate/disk.h"
#include "gate/record.h"
#include "gate/stage.h"
#include "gate/switcher.h"
#include "gate/transaction.h"

namespace stoplog::gate {

class Pending {
 public:
  static Result<Pending> open(int state, const Disk& disk);
  int fd() const { return dir_.get(); }

  Status write_intent(const Intent& intent);
  Status write_switch(const SwitchRecord& record);
  // Before the switch; durable with the next sync of the state.
  Status ready_abort();
  // Needs no space when it was made ready.
  Status write_abort();
  Result<std::optional<Intent>> intent() const;
  Result<std::optional<SwitchRecord>> switched() const;
  Result<bool> aborted() const;
  Status remove_switch();  // both marks of an abort too
  Status write_locks(const std::vector<RelPath>& locks);
  Result<std::vector<RelPath>> locks() const;
  Status remove_locks();
  Status remove_intent();

 private:
  Pending(Fd dir, const Disk& disk) : dir_(std::move(dir)), disk_(&disk) {}
  Result<std::optional<std::string>> read(const char* name) const;
  Status remove(const char* name);
  Fd dir_;
  const Disk* disk_;
};

// After the switch: pre-images into a pack, but for the slots `lost`; then the
// commit record, without the items at `untouched`. An old file that somebody
// wrote to since it left is Code::kDrift.
Result<CommitRecord> finish(const Ground& ground, const Disk& disk,
                            const SwitchRecord& record, const StageSet& stages,
                            std::vector<Left> left,
                            const std::set<RelPath>& untouched,
                            const std::set<uint32_t>& lost);
// Old files go; those that were written to after they were packed are kept.
Result<std::vector<Left>> keep_late_writes(const Ground& ground,
                                           const Disk& disk,
                                           const SwitchRecord& record,
                                           const StageSet& stages);
// The stage and the pending records go; the commit is on record by then.
Status tidy_up(const Ground& ground, const Disk& disk, Pending& pending,
               StageSet& stages, const CommitRecord& commit);
// Every step back, last first; then the stage is gone. What was left is named,
// and contents that would be lost are in the object store.
Result<std::vector<Left>> roll_back(const Ground& ground, const Disk& disk,
                                    Pending& pending,
                                    const SwitchRecord& record,
                                    StageSet& stages, Switcher& switcher);
// Takes the lock files of ground.locks that nobody else holds within a second;
// those that somebody does are in `unlocked`. release_locks() gives back what
// carries our mark.
Status take_locks(const Ground& ground, const Disk& disk, Pending& pending,
                  std::set<RelPath>& unlocked);
Status release_locks(const Ground& ground, const Disk& disk, Pending& pending);
// What becomes of a commit whose stage is on a file system that is not there.
enum class Lost { kWaits, kGivenUp };
Result<RecoverReport> recover_locked(const Ground& ground, const Disk& disk,
                                     Lost lost = Lost::kWaits);
// What is left when every step was taken back; part of both ways of that.
Result<std::vector<Left>> end_roll_back(const Ground& ground, const Disk& disk,
                                        Pending& pending,
                                        const SwitchRecord& record,
                                        StageSet& stages, Switcher& switcher,
                                        std::vector<std::optional<Left>> lefts);

}  // namespace stoplog::gate
