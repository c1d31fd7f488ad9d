// SPDX-License-Identifier: Apache-2.0
#include "gate/pending.h"

#include <map>
#include <set>
#include <utility>

#include "base/dir.h"
#include "base/escape.h"
#include "base/interrupt.h"
#include "base/parallel.h"
#include "fs/beneath.h"
#include "gate/aside.h"
#include "gate/clearing.h"
#include "gate/commits.h"
#include "gate/dir_times.h"
#include "gate/guard.h"
#include "gate/preimages.h"
#include "snapshot/content_digest.h"

namespace stoplog::gate {
namespace {

using Kind = SwitchOp::Kind;

constexpr const char* kPendingDir = "pending";
constexpr const char* kIntentFile = "intent";
constexpr const char* kSwitchFile = "switch";
constexpr const char* kAbortFile = "abort";
constexpr const char* kLocksFile = "locks";
constexpr uint64_t kMaxRecord = uint64_t{4} << 30;

}  // namespace

Result<Pending> Pending::open(int state, const Disk& disk) {
  Status made = disk.mkdirat(state, kPendingDir, 0700);
  if (!made && made.error().err() != EEXIST)
    return std::unexpected(std::move(made.error()).context("pending"));
  Fd dir = TRY(disk.openat(state, kPendingDir, O_RDONLY | O_DIRECTORY));
  // Records that were being written by one that died, before they had a name.
  for (const std::string& name : TRY(list_names(dir.get(), ".")))
    if (name.starts_with(".stoplog-") && name.ends_with(".tmp"))
      TRY(disk.unlinkat(dir.get(), name));
  return Pending(std::move(dir), disk);
}

Status Pending::write_intent(const Intent& intent) {
  // A stage in the state directory is found without it.
  return disk_->write_file(fd(), kIntentFile, encode(intent),
                           intent.stages.empty() ? Sync::kNo : Sync::kYes);
}
Status Pending::write_switch(const SwitchRecord& record) {
  return disk_->write_file(fd(), kSwitchFile, encode(record));
}
Status Pending::write_abort() {
  return disk_->write_file(fd(), kAbortFile, "abort\n");
}

Result<std::optional<std::string>> Pending::read(const char* name) const {
  auto bytes = sys::read_file(fd(), name, kMaxRecord);
  if (!bytes && bytes.error().err() == ENOENT) return std::nullopt;
  if (!bytes) return std::unexpected(std::move(bytes.error()).context(name));
  return std::move(*bytes);
}

Result<std::optional<Intent>> Pending::intent() const {
  auto bytes = TRY(read(kIntentFile));
  if (!bytes) return std::nullopt;
  auto intent = decode_intent(*bytes);
  // It is synced only when it speaks of a stage in the workspace: one that
  // power loss tore has nothing to say.
  if (!intent && intent.error().code() == Code::kCorrupt) return std::nullopt;
  return intent;
}
Result<std::optional<SwitchRecord>> Pending::switched() const {
  auto bytes = TRY(read(kSwitchFile));
  if (!bytes) return std::nullopt;
  return TRY(decode_switch(*bytes));
}
Result<bool> Pending::aborted() const {
  return TRY(read(kAbortFile)).has_value();
}

Status Pending::remove(const char* name) {
  Status gone = disk_->unlinkat(fd(), name);
  if (!gone && gone.error().err() != ENOENT) return gone;
  return {};
}
Status Pending::remove_switch() {
  TRY(remove(kSwitchFile));
  return remove(kAbortFile);
}
Status Pending::remove_intent() {
  // Only when nothing else is left may this one go.
  return remove(kIntentFile);
}

Status Pending::write_locks(const std::vector<RelPath>& locks) {
  return disk_->write_file(fd(), kLocksFile, encode_paths(locks));
}
Result<std::vector<RelPath>> Pending::locks() const {
  auto bytes = TRY(read(kLocksFile));
  if (!bytes) return std::vector<RelPath>{};
  return TRY(decode_paths(*bytes));
}
Status Pending::remove_locks() { return remove(kLocksFile); }

namespace {

// The file as it is when the stage is gone, which has names of some.
Result<std::optional<sys::Stat>> settled(const Ground& ground, const Disk& disk,
                                         const SwitchRecord& record,
                                         const RelPath& path) {
  auto dir = disk.open_dir(ground.root, path.parent());
  if (!dir) return std::nullopt;
  auto stat = TRY(disk.statat(dir->get(), std::string(path.name())));
  if (!stat || stat->nlink < 2 || S_ISDIR(stat->mode)) return stat;
  for (const LiveOp& live : record.ops)
    if (holds_old(live) && live.old_id == gate::identity_of(*stat))
      --stat->nlink;
  return stat;
}

// A place kept its mode, or was moved, or needed no step at all: the stat is as
// of now.
Status note_kept_inodes(const Ground& ground, const Disk& disk,
                        const SwitchRecord& record, CommitRecord& commit) {
  for (const LiveOp& live : record.ops) {
    if (live.op.kind != Kind::kMove && live.op.kind != Kind::kAttr &&
        !(live.op.kind == Kind::kPut && live.op.moving))
      continue;
    auto stat = TRY(settled(ground, disk, record, live.op.path));
    if (stat) commit.now[live.op.item] = *stat;
  }
  for (size_t i = 0; i < commit.items.size(); ++i)
    if (commit.items[i].fresh && !commit.now[i])
      commit.now[i] = TRY(settled(ground, disk, record, commit.items[i].path));
  return {};
}

}  // namespace

Result<CommitRecord> finish(const Ground& ground, const Disk& disk,
                            const SwitchRecord& record, const StageSet& stages,
                            std::vector<Left> left,
                            const std::set<RelPath>& untouched,
                            const std::set<uint32_t>& lost) {
  CommitRecord commit{.meta = record.meta,
                      .items = record.items,
                      .now = record.now,
                      .left = std::move(left),
                      .warnings = record.warnings};
  TRY(pack_preimages(ground, disk, record, stages, untouched, lost));
  TRY(note_kept_inodes(ground, disk, record, commit));
  commit.dirs = TRY(look_after(disk, ground.root, record.dirs));
  drop_left_items(commit, untouched);
  TRY(write_commit(ground.state, disk, commit));
  // The pack and the record at once.
  TRY(disk.syncfs(ground.state));
  return commit;
}

namespace {

// Was it written to since it was verified? Other names of it are edited as
// ever.
bool is_late(const Item& item, const sys::Stat& now) {
  const timespec& then = item.old_stat->mtime;
  return now.nlink <= 1 &&
         (then.tv_sec != now.mtime.tv_sec ||
          then.tv_nsec != now.mtime.tv_nsec || item.old_stat->size != now.size);
}

}  // namespace

// The commit is on record. What was written to an old file after it was packed
// is kept beside it, and named in a warning; the others go.
Status keep_late_writes(const Ground& ground, const Disk& disk,
                        const SwitchRecord& record, const StageSet& stages,
                        CommitRecord& commit) {
  constexpr size_t kRun = 32;
  std::vector<const LiveOp*> old;
  for (const LiveOp& live : record.ops) {
    const Item& item = record.items[live.op.item];
    if (holds_old(live) && item.old->is_file() && item.old_stat)
      old.push_back(&live);
  }
  std::vector<char> late(old.size());
  TRY(parallel_for((old.size() + kRun - 1) / kRun, 0,
                   [&](size_t run) -> Status {
                     size_t end = std::min(old.size(), (run + 1) * kRun);
                     for (size_t i = run * kRun; i < end; ++i) {
                       std::string slot = std::to_string(old[i]->op.slot);
                       int stage = stages.fd(old[i]->stage);
                       auto stat = TRY(disk.statat(stage, slot));
                       if (!stat) continue;
                       late[i] = is_late(record.items[old[i]->op.item], *stat);
                       if (!late[i]) TRY(disk.unlinkat(stage, slot));
                     }
                     return {};
                   }));
  for (size_t i = 0; i < old.size(); ++i) {
    if (!late[i]) continue;
    Guard guard = TRY(Guard::take(disk, stages.fd(old[i]->stage),
                                  std::to_string(old[i]->op.slot)));
    snapshot::OpenContent content(guard.fd(), guard.stat());
    Left left{old[i]->op.path,
              "was written to by a program that had opened it before it was "
              "replaced",
              TRY(ground.objects->put(content))};
    TRY(note_kept(ground.state, disk, left));
    commit.warnings.push_back(left.text());
  }
  return {};
}

Status tidy_up(const Ground& ground, const Disk& disk, Pending& pending,
               StageSet& stages, const CommitRecord& commit) {
  TRY(stages.remove());
  set_times_of(disk, ground.root, stages.in_tree(), commit.dirs);
  TRY(pending.remove_switch());
  return pending.remove_intent();
}

namespace {

Result<Clearing> clear(const Ground& ground, const Disk& disk,
                       const SwitchRecord& record, const StageSet& stages,
                       Switcher& switcher,
                       std::vector<std::optional<Left>> lefts) {
  Clearing clearing(ground, disk, record, stages, switcher);
  for (size_t i = 0; i < record.ops.size(); ++i)
    TRY(clearing.settle(record.ops[i], std::move(lefts[i])));
  TRY(clearing.settle_asides());
  return clearing;
}

std::vector<Left> all_of(const Clearing& clearing) {
  std::vector<Left> all = clearing.left();
  all.insert(all.end(), clearing.asides().begin(), clearing.asides().end());
  return all;
}

}  // namespace

Result<std::vector<Left>> roll_back(const Ground& ground, const Disk& disk,
                                    Pending& pending,
                                    const SwitchRecord& record,
                                    StageSet& stages, Switcher& switcher) {
  TRY(pending.write_abort());
  std::vector<std::optional<Left>> lefts(record.ops.size());
  for (size_t i = record.ops.size(); i-- > 0;)
    lefts[i] = TRY(switcher.revert(record.ops[i]));
  std::vector<Left> all = all_of(
      TRY(clear(ground, disk, record, stages, switcher, std::move(lefts))));
  for (const Left& left : all)
    if (left.kept) TRY(note_kept(ground.state, disk, left));
  TRY(stages.sync());
  TRY(pending.remove_switch());
  TRY(stages.remove());
  TRY(pending.remove_intent());
  return all;
}

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
      if (auto now = TRY(disk_.statat(dir->get(), std::string(path->name()))))
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

Result<RecoverReport> recover_switch(const Ground& ground, const Disk& disk,
                                     Pending& pending, SwitchRecord& record,
                                     const Identity& root) {
  RecoverReport report;
  StageSet stages(disk, ground.root, pending.fd(), record.meta.id, true);
  TRY(stages.open(record.stages));
  const bool committed = TRY(has_commit(ground.state, record.meta));
  if (!committed) TRY(stages.restore());
  TRY(Renumbering(record, disk, ground.root, stages).run(root));
  if (committed) {
    // It was done: only tidying up was left.
    report.what = RecoverReport::What::kForward;
    report.record = TRY(read_commit(ground.state, record.meta.number));
    TRY(tidy_up(ground, disk, pending, stages, *report.record));
    return report;
  }
  Switcher switcher(disk, ground.root, record, stages, {});
  // The switch record is written when all that it speaks of is on the disk. One
  // whose stage is not there comes from a disk that kept the later and lost the
  // earlier, and then nothing was moved yet.
  if (TRY(pending.aborted()) || !TRY(switcher.is_stage_whole())) {
    report.what = RecoverReport::What::kBack;
    report.left =
        TRY(roll_back(ground, disk, pending, record, stages, switcher));
    return report;
  }
  report.what = RecoverReport::What::kForward;
  std::vector<std::optional<Left>> lefts;
  for (const LiveOp& live : record.ops)
    lefts.push_back(TRY(switcher.advance(live)));
  Clearing clearing =
      TRY(clear(ground, disk, record, stages, switcher, std::move(lefts)));
  std::set<RelPath> untouched;
  for (const Left& left : clearing.left()) untouched.insert(left.path);
  report.left = all_of(clearing);
  LostPreimages lost = TRY(find_lost(ground, disk, record, stages, untouched));
  report.left.insert(report.left.end(), lost.left.begin(), lost.left.end());
  set_times(disk, ground.root, record.dirs);
  TRY(stages.sync());
  report.record = TRY(
      finish(ground, disk, record, stages, report.left, untouched, lost.slots));
  TRY(tidy_up(ground, disk, pending, stages, *report.record));
  return report;
}

}  // namespace

Result<RecoverReport> recover_locked(const Ground& ground, const Disk& disk) {
  TRY(bring_back(ground.state, disk, ground.root));
  // Not made here: a workspace that never had a commit stays without.
  auto dir = sys::openat(ground.state, kPendingDir, O_RDONLY | O_DIRECTORY);
  if (!dir && dir.error().err() == ENOENT) return RecoverReport{};
  if (!dir) return std::unexpected(dir.error());
  Pending pending = TRY(Pending::open(ground.state, disk));
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
    report = TRY(recover_switch(ground, disk, pending, *record, root));
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

Result<RecoverReport> recover(const Ground& ground) {
  static const Disk kDisk;
  const Disk& disk = ground.disk != nullptr ? *ground.disk : kDisk;
  bool waits = TRY(find_aside(ground.state, ground.root)).has_value();
  auto dir = sys::openat(ground.state, kPendingDir, O_RDONLY | O_DIRECTORY);
  if (!dir && dir.error().err() != ENOENT) return std::unexpected(dir.error());
  if (!waits && (!dir || TRY(list_names(dir->get(), ".")).empty()))
    return RecoverReport{};
  Fd lock = TRY(lock_root(ground));
  auto use = TRY(ground.objects->use());
  Hold hold;
  return recover_locked(ground, disk);
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
             : "a commit that was interrupted has been completed";
  for (const Left& path : left) {
    text += "; " + path.text();
  }
  return text;
}

}  // namespace stoplog::gate
