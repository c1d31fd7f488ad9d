// SPDX-License-Identifier: Apache-2.0
#include "gate/pending.h"

#include <map>
#include <set>
#include <utility>

#include "base/dir.h"
#include "base/escape.h"
#include "base/interrupt.h"
#include "base/parallel.h"
#include "base/shown_path.h"
#include "base/temp_sweep.h"
#include "fs/beneath.h"
#include "gate/aside.h"
#include "gate/clearing.h"
#include "gate/commits.h"
#include "gate/dir_times.h"
#include "gate/guard.h"
#include "gate/name_in.h"
#include "gate/preimages.h"
#include "snapshot/content_digest.h"

namespace stoplog::gate {
namespace {

using Kind = SwitchOp::Kind;

constexpr const char* kIntentFile = "intent";
constexpr const char* kSwitchFile = "switch";
constexpr const char* kAbortFile = "abort";
constexpr const char* kReadyFile = "abort.ready";
constexpr const char* kAbortText = "abort\n";
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
    if (is_temp_name(name)) TRY(disk.unlinkat(dir.get(), name));
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
Status Pending::ready_abort() {
  return disk_->write_file(fd(), kReadyFile, kAbortText, Sync::kNo);
}
Status Pending::write_abort() {
  if (TRY(aborted())) return {};
  // Not one: a recovery that came back here, or an older program's commit.
  if (!disk_->rename(fd(), kReadyFile, fd(), kAbortFile, 0))
    return disk_->write_file(fd(), kAbortFile, kAbortText);
  TRY(disk_->step("fsync"));
  return sys::fsync(fd());
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
  TRY(remove(kReadyFile));
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

// How many names of a file are in the stage.
using StagedNames = std::map<std::pair<dev_t, uint64_t>, uint32_t>;
StagedNames staged_names(const SwitchRecord& record) {
  StagedNames names;
  for (const LiveOp& live : record.ops)
    if (holds_old(live)) ++names[{live.old_id.dev, live.old_id.ino}];
  return names;
}

// The file as it is when the stage is gone, which has names of some.
Result<std::optional<sys::Stat>> settled(const Ground& ground, const Disk& disk,
                                         const StagedNames& staged,
                                         const RelPath& path) {
  auto dir = disk.open_dir(ground.root, path.parent());
  if (!dir) return std::nullopt;
  auto stat = TRY(disk.statat(dir->get(), name_in(path)));
  if (!stat || stat->nlink < 2 || S_ISDIR(stat->mode)) return stat;
  auto names = staged.find({stat->dev, stat->ino});
  if (names != staged.end())
    stat->nlink -= std::min(names->second, stat->nlink);
  return stat;
}

// A place kept its mode, or was moved, or needed no step at all: the stat is as
// of now.
Status note_kept_inodes(const Ground& ground, const Disk& disk,
                        const SwitchRecord& record, CommitRecord& commit) {
  const StagedNames staged = staged_names(record);
  for (const LiveOp& live : record.ops) {
    if (live.op.kind != Kind::kMove && live.op.kind != Kind::kAttr &&
        !(live.op.kind == Kind::kPut && live.op.moving))
      continue;
    auto stat = TRY(settled(ground, disk, staged, live.op.path));
    if (stat) commit.now[live.op.item] = *stat;
  }
  for (size_t i = 0; i < commit.items.size(); ++i)
    if (commit.items[i].fresh && !commit.now[i])
      commit.now[i] = TRY(settled(ground, disk, staged, commit.items[i].path));
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
// is kept beside it; the others go.
Result<std::vector<Left>> keep_late_writes(const Ground& ground,
                                           const Disk& disk,
                                           const SwitchRecord& record,
                                           const StageSet& stages) {
  constexpr size_t kRun = 32;
  std::vector<const LiveOp*> old;
  for (const LiveOp& live : record.ops) {
    const Item& item = record.items[live.op.item];
    if (holds_old(live) && item.old->is_file() && item.old_stat &&
        stages.fd(live.stage) >= 0)
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
  std::vector<Left> kept;
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
    kept.push_back(std::move(left));
  }
  return kept;
}

Status tidy_up(const Ground& ground, const Disk& disk, Pending& pending,
               StageSet& stages, const CommitRecord& commit) {
  TRY(stages.remove());
  set_times_of(disk, ground.root, stages.in_tree(), commit.dirs);
  TRY(pending.remove_switch());
  return pending.remove_intent();
}

Result<std::vector<Left>> roll_back(const Ground& ground, const Disk& disk,
                                    Pending& pending,
                                    const SwitchRecord& record,
                                    StageSet& stages, Switcher& switcher) {
  TRY(pending.write_abort());
  switcher.open_up();
  std::vector<std::optional<Left>> lefts(record.ops.size());
  for (size_t i = record.ops.size(); i-- > 0;)
    lefts[i] = TRY_CTX(switcher.revert(record.ops[i]),
                       quote_name(shown_path(record.ops[i].op.path)));
  return end_roll_back(ground, disk, pending, record, stages, switcher,
                       std::move(lefts));
}

Result<std::vector<Left>> end_roll_back(
    const Ground& ground, const Disk& disk, Pending& pending,
    const SwitchRecord& record, StageSet& stages, Switcher& switcher,
    std::vector<std::optional<Left>> lefts) {
  switcher.release_held();
  Clearing clearing(ground, disk, record, stages, switcher);
  TRY(clearing.settle_all(std::move(lefts)));
  TRY(switcher.shut());  // what stays
  std::vector<Left> all = clearing.all();
  for (const Left& left : all)
    if (left.kept) TRY(note_kept(ground.state, disk, left));
  TRY(withdraw_commit(ground.state, disk, record.meta));
  TRY(stages.sync());
  // The switch record is what tells that it was taken back: it stays until no
  // loss of power can bring the commit's own back.
  if (!stages.is_in_state()) TRY(disk.syncfs(ground.state));
  TRY(pending.remove_switch());
  TRY(stages.remove());
  TRY(pending.remove_intent());
  return all;
}

}  // namespace stoplog::gate
