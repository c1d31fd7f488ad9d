// SPDX-License-Identifier: Apache-2.0
// The directory, one for each mount that a commit touches, in which everything
// new is made before the switch and everything old lies after it. In the
// state directory when that is on the same mount as the workspace, else
// ".stoplog-<id>" (0700) at the top of the mount within the workspace.
//
//   StageSet stages(disk, root, pending, id);
//   uint32_t s = TRY(stages.stage_for(path));   // decides, makes nothing
//   TRY(stages.make());                         // after the intent is synced
//   TRY(stages.fill(plan, record));             // writes, verifies
//   TRY(stages.remove());
//
// The disk and the fds are borrowed.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/fd.h"
#include "base/result.h"
#include "gate/commit_plan.h"
#include "gate/disk.h"
#include "gate/record.h"

namespace stoplog::gate {

class StageSet {
 public:
  // `in_state`: whether the state directory may hold a stage at all.
  StageSet(const Disk& disk, int root, int pending, std::string id,
           bool in_state);

  // The stage on the mount of the directory that holds `path`, or of the
  // nearest one above that exists.
  Result<uint32_t> stage_for(const RelPath& path);
  const std::vector<StagePlace>& places() const { return places_; }
  // One of them stands in the state directory.
  bool is_in_state() const;
  // The in-tree ones, for the intent.
  std::vector<RelPath> in_tree() const;

  // Makes the directories and tries in each what the switch needs:
  // Code::kUnsupported names a file system that cannot exchange names.
  Status make();
  // For recovery: opens what there is; an absent stage has fd -1.
  enum class Unreadable { kFails, kAbsent };
  Status open(const std::vector<StagePlace>& places,
              Unreadable unreadable = Unreadable::kFails);
  // Makes those that are absent again, empty: a disk lost them, or somebody
  // removed them. Code::kUnsupported when their file system is not there.
  Status restore();
  // That one is not to be had any more, and is left as it is.
  void abandon(uint32_t stage);
  bool is_abandoned(uint32_t stage) const { return abandoned_.contains(stage); }
  int fd(uint32_t stage) const { return dirs_[stage].get(); }

  // Everything of plan.stage; `stage_of[item]` says where. Fills record.now,
  // .places and .warnings. Content that has not the digest its item names is
  // Code::kDrift.
  Status fill(const CommitPlan& plan, const std::vector<uint32_t>& stage_of,
              SwitchRecord& record);
  Status sync() const;
  Status remove();

 private:
  Result<uint64_t> mount_of(const RelPath& dir);
  Result<RelPath> top_of(const RelPath& dir, uint64_t mount);
  Result<uint32_t> add_stage(const RelPath& path, uint64_t mount);
  Status make_one(uint32_t stage);
  Status restore_one(uint32_t stage);
  Result<Fd> find_top(const StagePlace& place);
  Status probe(int dir) const;
  // The directory within a stage that was used last. One thread's.
  struct LastDir {
    int stage = -1;
    std::string place;
    Fd fd;
  };
  Result<int> parent_of(LastDir& last, int stage,
                        const std::string& place) const;
  Status make_files(const CommitPlan& plan, SwitchRecord& record);
  Status make_node(const CommitPlan& plan, const StageOp& op, int stage,
                   SwitchRecord& record);
  Status make_alone(const StageOp& op, const Item& item, int stage, int dir,
                    SwitchRecord& record);
  // False: it cannot be linked here, and must be a file of its own.
  Result<bool> make_link(const CommitPlan& plan, const StageOp& op, int stage,
                         int dir, SwitchRecord& record);
  Result<bool> link_failed(const CommitPlan& plan, const StageOp& op,
                           Error error, SwitchRecord& record);
  struct Made {
    sys::Stat stat;
    std::vector<std::string> missed;
  };
  Result<Made> make_file(int dir, const std::string& name,
                         const Item& item) const;
  static void note_missed(const Item& item,
                          const std::vector<std::string>& missed,
                          SwitchRecord& record);
  Status finish_node(int stage, const StageOp& op, const Item& item,
                     SwitchRecord& record);

  const Disk& disk_;
  int root_;
  int pending_;
  std::string id_;
  bool in_state_;
  std::map<RelPath, uint64_t> mounts_;     // of existing directories
  std::map<uint64_t, uint32_t> by_mount_;  // mount -> stage
  std::optional<std::pair<std::string, uint32_t>> asked_;  // stage_for()'s last
  std::vector<StagePlace> places_;
  std::vector<Fd> dirs_;
  std::set<uint32_t> abandoned_;
  std::vector<uint32_t> stage_of_;  // by item, while they are filled
  LastDir last_;
};

inline constexpr std::string_view kStageName = "stage";
inline constexpr std::string_view kTreeStagePrefix = ".stoplog-";

}  // namespace stoplog::gate
