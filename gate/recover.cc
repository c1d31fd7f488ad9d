// SPDX-License-Identifier: Apache-2.0
// After a crash: a commit that died is finished forward, taken back, set aside
// or, when a person says so, given up. See gate/pending.h.
#include <map>
#include <set>
#include <utility>

#include "base/dir.h"
#include "base/escape.h"
#include "base/interrupt.h"
#include "base/shown_path.h"
#include "fs/beneath.h"
#include "gate/aside.h"
#include "gate/clearing.h"
#include "gate/commits.h"
#include "gate/dir_times.h"
#include "gate/name_in.h"
#include "gate/pending.h"
#include "gate/preimages.h"

namespace stoplog::gate {
namespace {

// A restart of the machine may have numbered the devices anew. What is found
// again tells, and nothing else: on overlays and with nested subvolumes a file
// is not on the device of the directory that it is in.
class Renumbering {
 public:
  Renumbering(SwitchRecord& record, const Disk& disk, int root,
              const StageSet& stages)
      : record_(record), disk_(disk), root_(root), stages_(stages) {}

  Status run(const Identity& root) {
    for (const LiveOp& live : record_.ops) {
      const Item& item = record_.items[live.op.item];
      TRY(find(live, live.old_id, item.old_stat));
      TRY(find(live, live.fresh_id, record_.now[live.op.item]));
    }
    devices_.emplace(record_.root.dev, root.dev);
    for (LiveOp& live : record_.ops)
      for (Identity* id : {&live.old_id, &live.fresh_id})
        if (auto device = devices_.find(id->dev); device != devices_.end())
          id->dev = device->second;
    renumber(record_.items, record_.now, devices_);
    return {};
  }

 private:
  Status find(const LiveOp& live, const Identity& id,
              const std::optional<sys::Stat>& then) {
    if (!id.known() || devices_.contains(id.dev)) return {};
    std::vector<sys::Stat> places;
    if (int stage = stages_.fd(live.stage); stage >= 0)
      if (auto now = TRY(disk_.statat(stage, std::to_string(live.op.slot))))
        places.push_back(*now);
    const Item& item = record_.items[live.op.item];
    for (const RelPath* path : {&live.op.path, &item.path, &item.base_path()}) {
      auto dir = disk_.open_dir(root_, path->parent());
      if (!dir) continue;
      if (auto now = TRY(disk_.statat(dir->get(), name_in(*path))))
        places.push_back(*now);
    }
    // First as it was: an overlay that copies a file up gives it another time
    // of birth.
    for (const sys::Stat& now : places)
      if (identity_of(now) == id) devices_.emplace(id.dev, id.dev);
    for (const sys::Stat& now : places)
      if (then && now.ino == id.ino && fs::same_time(now.btime, then->btime))
        devices_.emplace(id.dev, now.dev);
    return {};
  }

  SwitchRecord& record_;
  const Disk& disk_;
  int root_;
  const StageSet& stages_;
  std::map<dev_t, dev_t> devices_;  // then -> now
};

std::string stage_name(const SwitchRecord& record, uint32_t stage) {
  std::string name = std::string(kTreeStagePrefix) + record.meta.id;
  return quote_name((record.stages[stage].dir / name).str());
}

Left left_there(const SwitchRecord& record, const LiveOp& live,
                std::string_view why) {
  return {live.op.path,
          fmt::format("{}, and stays as far as the commit came; what it was, "
                      "or was to be, is in {}",
                      why, stage_name(record, live.stage)),
          std::nullopt};
}

// Unlike roll_back() nothing stops it: what fails is named, and the stage in
// which it lies stays as it is, for it may have somebody's only copy.
Result<std::vector<Left>> roll_back_rest(const Ground& ground, const Disk& disk,
                                         Pending& pending,
                                         const SwitchRecord& record,
                                         StageSet& stages, Switcher& switcher) {
  TRY(pending.write_abort());
  switcher.open_up();
  for (uint32_t i = 0; i < record.stages.size(); ++i)
    if (stages.fd(i) < 0) stages.abandon(i);
  std::vector<std::optional<Left>> lefts(record.ops.size());
  for (size_t i = record.ops.size(); i-- > 0;) {
    const LiveOp& live = record.ops[i];
    if (stages.is_abandoned(live.stage)) {
      lefts[i] = left_there(record, live, "is on a file system that is gone");
      continue;
    }
    auto done = switcher.revert(live);
    if (done) {
      lefts[i] = std::move(*done);
      continue;
    }
    std::string why = "could not be taken back: " + done.error().text();
    if (record.stages[live.stage].in_state) {
      lefts[i] = Left{live.op.path, std::move(why), std::nullopt};
      continue;
    }
    lefts[i] = left_there(record, live, why);
    stages.abandon(live.stage);
  }
  return end_roll_back(ground, disk, pending, record, stages, switcher,
                       std::move(lefts));
}

// Forward, or back where that was begun or nothing else is left. An error names
// the path that stands in the way.
Result<RecoverReport> bring_to_end(const Ground& ground, const Disk& disk,
                                   Pending& pending, const SwitchRecord& record,
                                   StageSet& stages, bool aborted) {
  RecoverReport report;
  Switcher switcher(disk, ground.root, record, stages, {});
  switcher.open_up();
  // The switch record is written when all that it speaks of is on the disk. One
  // whose stage is not there comes from a disk that kept the later and lost the
  // earlier, and then nothing was moved yet.
  if (aborted || !TRY(switcher.is_stage_whole())) {
    report.what = RecoverReport::What::kBack;
    report.left =
        TRY(roll_back(ground, disk, pending, record, stages, switcher));
    return report;
  }
  report.what = RecoverReport::What::kForward;
  std::vector<std::optional<Left>> lefts;
  for (const LiveOp& live : record.ops)
    lefts.push_back(
        TRY_CTX(switcher.advance(live), quote_name(shown_path(live.op.path))));
  Clearing clearing(ground, disk, record, stages, switcher);
  TRY(clearing.settle_all(std::move(lefts)));
  std::set<RelPath> untouched;
  for (const Left& left : clearing.left()) untouched.insert(left.path);
  report.left = clearing.all();
  LostPreimages gone = TRY(find_lost(ground, disk, record, stages, untouched));
  report.left.insert(report.left.end(), gone.left.begin(), gone.left.end());
  TRY(switcher.shut());
  set_times(disk, ground.root, record.dirs);
  TRY(stages.sync());
  report.record = TRY(
      finish(ground, disk, record, stages, report.left, untouched, gone.slots));
  return report;
}

Result<RecoverReport> recover_switch(const Ground& ground, const Disk& disk,
                                     Pending& pending, SwitchRecord& record,
                                     const Identity& root, Lost lost) {
  RecoverReport report;
  StageSet stages(disk, ground.root, pending.fd(), record.meta.id, true);
  const bool gives_up = lost == Lost::kGivenUp;
  TRY(stages.open(record.stages, gives_up ? StageSet::Unreadable::kAbsent
                                          : StageSet::Unreadable::kFails));
  // One that is being taken back may have come as far as its record.
  const bool aborted = TRY(pending.aborted());
  const bool committed = !aborted && TRY(has_commit(ground.state, record.meta));
  Status restored;
  if (!committed) restored = stages.restore();
  if (!restored && !gives_up) return std::unexpected(restored.error());
  TRY(Renumbering(record, disk, ground.root, stages).run(root));
  if (committed) {
    // It was done: only tidying up was left.
    report.what = RecoverReport::What::kForward;
    report.record = TRY(read_commit(ground.state, record.meta.number));
    report.left = TRY(keep_late_writes(ground, disk, record, stages));
    // Seen is not on the disk: it may have died before it was synced.
    TRY(disk.syncfs(ground.state));
    TRY(tidy_up(ground, disk, pending, stages, *report.record));
    return report;
  }
  if (restored) {
    auto ended = bring_to_end(ground, disk, pending, record, stages, aborted);
    if (ended && ended->record)
      TRY(tidy_up(ground, disk, pending, stages, *ended->record));
    // Without its switch record only the stage is left to remove.
    if (ended || !gives_up || !TRY(pending.switched())) return ended;
    TRY(stages.open(record.stages, StageSet::Unreadable::kAbsent));
  }
  Switcher switcher(disk, ground.root, record, stages, {});
  report.what = RecoverReport::What::kGivenUp;
  report.left =
      TRY(roll_back_rest(ground, disk, pending, record, stages, switcher));
  return report;
}

}  // namespace

Result<RecoverReport> recover_locked(const Ground& ground, const Disk& disk,
                                     Lost lost) {
  TRY(bring_back(ground.state, disk, ground.root));
  // Not made here: a workspace that never had a commit stays without.
  auto dir = sys::openat(ground.state, kPendingDir, O_RDONLY | O_DIRECTORY);
  if (!dir && dir.error().err() == ENOENT) return RecoverReport{};
  if (!dir) return std::unexpected(dir.error());
  Pending pending = TRY(Pending::open(ground.state, disk));
  TRY(clear_unfinished(ground.state, disk));
  auto intent = TRY(pending.intent());
  auto record = TRY(pending.switched());
  if (!intent && !record) {
    TRY(disk.remove_tree(pending.fd(), std::string(kStageName)));
    TRY(pending.remove_switch());
    TRY(pending.remove_intent());
    TRY(release_locks(ground, disk, pending));
    return RecoverReport{};
  }
  Identity root = gate::identity_of(TRY(sys::fstat(ground.root)));
  Identity begun = record ? record->root : intent->root;
  if (begun.ino != root.ino) {
    RecoverReport aside{.what = RecoverReport::What::kAside};
    aside.draft = record ? record->meta.draft : intent->draft;
    aside.place = TRY(set_aside(ground.state, disk, begun,
                                record ? record->meta.id : intent->id));
    return aside;
  }
  RecoverReport report;
  if (record) {
    report = TRY(recover_switch(ground, disk, pending, *record, root, lost));
  } else {
    report.what = RecoverReport::What::kBack;
    auto commits = TRY(list_commits(ground.state));
    if (!commits.empty()) {
      CommitRecord last = TRY(read_commit(ground.state, commits.back()));
      if (last.meta.id == intent->id) {
        // It was done, and nearly tidied up.
        report.what = RecoverReport::What::kForward;
        report.record = std::move(last);
      }
    }
    StageSet stages(disk, ground.root, pending.fd(), intent->id, true);
    std::vector<StagePlace> places{{true, RelPath()}};
    for (const RelPath& top : intent->stages) places.push_back({false, top});
    TRY(stages.open(places));
    TRY(stages.remove());
    if (report.record)
      set_times_of(disk, ground.root, intent->stages, report.record->dirs);
  }
  report.draft = record ? record->meta.draft : intent->draft;
  // A mark of an abort must not outlive it: it would turn the next one back.
  TRY(pending.remove_switch());
  TRY(pending.remove_intent());
  TRY(release_locks(ground, disk, pending));
  return report;
}

Result<bool> is_interrupted(int state, int root) {
  if (TRY(find_aside(state, root))) return true;
  auto dir = sys::openat(state, kPendingDir, O_RDONLY | O_DIRECTORY);
  if (!dir && dir.error().err() == ENOENT) return false;
  if (!dir) return std::unexpected(dir.error());
  return !TRY(list_names(dir->get(), ".")).empty();
}

namespace {

Result<RecoverReport> recover_waiting(const Ground& ground, Lost lost) {
  static const Disk kDisk;
  const Disk& disk = ground.disk != nullptr ? *ground.disk : kDisk;
  if (!TRY(is_interrupted(ground.state, ground.root))) return RecoverReport{};
  Fd lock = TRY(lock_root(ground));
  auto use = TRY(ground.objects->use());
  Hold hold;
  return recover_locked(ground, disk, lost);
}

}  // namespace

Result<RecoverReport> recover(const Ground& ground) {
  return recover_waiting(ground, Lost::kWaits);
}

Result<RecoverReport> give_up(const Ground& ground) {
  return recover_waiting(ground, Lost::kGivenUp);
}

std::string_view RecoverReport::word() const {
  switch (what) {
    case What::kForward:
      return "completed";
    case What::kBack:
      return "taken back";
    case What::kAside:
      return "set aside";
    case What::kGivenUp:
      return "given up";
    case What::kNothing:
      break;
  }
  return "nothing";
}

std::string RecoverReport::text() const {
  std::string text;
  if (what == What::kNothing) return text;
  if (what == What::kAside)
    return "a commit was interrupted on another directory that stood here: it "
           "is kept as '" +
           escape(place) + "' and is finished when that directory is back";
  text = what == What::kBack
             ? "a commit that was interrupted has been taken back"
         : what == What::kGivenUp
             ? "a commit that was interrupted has been given up, and taken "
               "back as far as its disks are here"
             : "a commit that was interrupted has been completed";
  for (const Left& path : left) {
    text += "; " + path.text();
  }
  return text;
}

}  // namespace stoplog::gate
