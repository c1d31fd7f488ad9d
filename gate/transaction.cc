// SPDX-License-Identifier: Apache-2.0
#include "gate/transaction.h"

#include <sys/file.h>
#include <sys/random.h>
#include <unistd.h>

#include <algorithm>
#include <thread>

#include "base/escape.h"
#include "base/interrupt.h"
#include "base/shown_path.h"
#include "gate/commits.h"
#include "gate/dir_times.h"
#include "gate/dir_watch.h"
#include "gate/pending.h"
#include "gate/stage.h"
#include "gate/switcher.h"

namespace stoplog::gate {
namespace {

using Clock = std::chrono::steady_clock;

// A step is up to four events, and the kernel's queue has room for 16,384.
constexpr size_t kDrainEvery = 256;

std::string fresh_id() {
  unsigned char bytes[8];
  if (::getrandom(bytes, sizeof bytes, 0) != sizeof bytes) {
    // Only before the pool is seeded at boot; the pid tells attempts apart.
    uint64_t fallback = static_cast<uint64_t>(::getpid());
    std::memcpy(bytes, &fallback, sizeof bytes);
  }
  return hex(bytes);
}

class Transaction {
 public:
  Transaction(const Ground& ground, const Disk& disk, bool stage_in_state)
      : ground_(ground), disk_(disk), stage_in_state_(stage_in_state) {}

  Result<CommitRecord> run(std::vector<Item> items, CommitMeta meta,
                           Timing* timing) {
    auto start = Clock::now();
    plan_ = TRY(build_plan(std::move(items)));
    Verified verified = TRY(verify_base(disk_, ground_.root, plan_.items));
    if (!verified.drifts.empty())
      return std::unexpected(drift_error(verified.drifts));
    if (timing != nullptr) timing->verify = Clock::now() - start;

    pending_ = TRY(Pending::open(ground_.state, disk_));
    meta.id = fresh_id();
    meta.number = TRY(next_commit_number(ground_.state));
    record_.meta = std::move(meta);
    Status staged = stage();
    if (!staged) return std::unexpected(abandon(std::move(staged.error())));
    if (timing != nullptr) timing->stage = Clock::now() - start;
    OnInterrupt say("stoplog: finishing first: it is all or nothing\n");

    Switcher switcher(disk_, ground_.root, record_, *stages_,
                      std::move(verified.parents));
    Status switched = switch_over(switcher, timing);
    if (!switched)
      return std::unexpected(take_back(switcher, std::move(switched.error())));
    if (timing != nullptr) timing->switched = Clock::now() - start;
    record_.warnings.insert(record_.warnings.end(), switcher.warnings().begin(),
                            switcher.warnings().end());
    watch_.settle(disk_, ground_.root, record_.dirs);
    Status synced = stages_->sync();
    if (!synced)
      return std::unexpected(take_back(switcher, std::move(synced.error())));
    if (timing != nullptr) timing->durable = Clock::now() - start;

    auto record = finish(ground_, disk_, record_, *stages_, {}, {}, {});
    if (!record)
      return std::unexpected(take_back(switcher, std::move(record.error())));
    Status tidy = [&]() -> Status {
      for (const Left& late :
           TRY(keep_late_writes(ground_, disk_, record_, *stages_)))
        record->warnings.push_back(late.text());
      return {};
    }();
    if (tidy) tidy = tidy_up(ground_, disk_, *pending_, *stages_, *record);
    if (!tidy)
      record->warnings.push_back(
          "temporary files remain until the next command: " +
          tidy.error().text());
    if (timing != nullptr) timing->total = Clock::now() - start;
    return record;
  }

  // Those it was given, for another try.
  std::vector<Item> take_items() {
    return std::move(record_.items.empty() ? plan_.items : record_.items);
  }

 private:
  Status stage() {
    stages_.emplace(disk_, ground_.root, pending_->fd(), record_.meta.id,
                    stage_in_state_);
    sys::Stat root = TRY(sys::fstat(ground_.root));
    record_.root = gate::identity_of(root);
    TRY(assign_stages());
    TRY(note_times());
    TRY(pending_->write_intent({.id = record_.meta.id,
                                .draft = record_.meta.draft,
                                .root = record_.root,
                                .stages = stages_->in_tree()}));
    TRY(pending_->ready_abort());
    TRY(stages_->make());
    record_.stages = stages_->places();
    TRY(stages_->fill(plan_, stage_of_, record_));
    for (LiveOp& live : record_.ops)
      if (record_.now[live.op.item] && !live.op.moving)
        live.fresh_id = gate::identity_of(*record_.now[live.op.item]);
    record_.items = std::move(plan_.items);
    TRY(stages_->sync());
    // The draft lies there, too: after a loss of power it must not be older
    // than the commit that it is told of.
    if (!stages_->is_in_state()) TRY(disk_.syncfs(ground_.state));
    TRY(check_interrupt());
    return pending_->write_switch(record_);
  }

  // Each item's stage is that of the mount where it comes to stand; a thing
  // cannot change its mount by a rename.
  Status assign_stages() {
    stage_of_.assign(plan_.items.size(), 0);
    for (const StageOp& op : plan_.stage)
      stage_of_[op.item] = TRY(stages_->stage_for(plan_.items[op.item].path));
    for (const SwitchOp& op : plan_.ops) {
      const Item& item = plan_.items[op.item];
      LiveOp live{.op = op,
                  .stage = TRY(stages_->stage_for(op.path)),
                  .old_id = {},
                  .fresh_id = {}};
      if (item.old_stat) live.old_id = gate::identity_of(*item.old_stat);
      bool moves = op.moving || op.kind == SwitchOp::Kind::kMove;
      if (moves && TRY(stages_->stage_for(item.base_path())) !=
                       TRY(stages_->stage_for(item.path)))
        return fail(Code::kUnsupported,
                    "{} cannot move to {}: another file system is mounted "
                    "there",
                    quote_name(shown_path(item.base_path())),
                    quote_name(shown_path(item.path)));
      record_.ops.push_back(std::move(live));
    }
    return {};
  }

  Status note_times() {
    std::vector<DirTimes> dirs = touched_directories(plan_);
    for (const RelPath& top : stages_->in_tree())
      if (std::ranges::find(dirs, top, &DirTimes::path) == dirs.end())
        dirs.push_back({.path = top, .now = top});
    record_.dirs = TRY(look_before(disk_, ground_.root, std::move(dirs)));
    give_back(record_.dirs, ground_.times);
    watch_ = DirWatch::begin(disk_, ground_.root, record_.dirs, record_.ops,
                             std::string(kTreeStagePrefix) + record_.meta.id);
    return {};
  }

  Status switch_over(Switcher& switcher, Timing* timing) {
    // Something came, went or turned into something else on the way.
    auto told = [](Error error) {
      for (int err : {ENOENT, EEXIST, ENOTEMPTY, ENOTDIR, EISDIR, ELOOP})
        if (error.err() == err) error = std::move(error).as(Code::kDrift);
      return std::unexpected(std::move(error));
    };
    if (Status held = switcher.hold(); !held)
      return told(std::move(held.error()));
    auto first = Clock::now();
    size_t steps = 0;
    for (const LiveOp& live : record_.ops) {
      Status done = switcher.perform(live);
      if (++steps % kDrainEvery == 0) watch_.drain();
      if (!done)
        return told(std::move(done.error())
                        .context(quote_name(shown_path(live.op.path))));
    }
    if (timing != nullptr) timing->mixed = Clock::now() - first;
    TRY(switcher.check_held());
    std::vector<Drift> drifts;
    for (const LiveOp& live : record_.ops)
      if (auto what = TRY(switcher.came_out(live)))
        drifts.push_back({live.op.path, live.op.item, *what});
    for (Drift& drift : TRY(switcher.broken_links()))
      drifts.push_back(std::move(drift));
    if (!drifts.empty()) return std::unexpected(drift_error(drifts));
    if (auto what = TRY(switcher.moved_parent()))
      return fail(Code::kDrift, "{}", *what);
    return switcher.shut();
  }

  // Nothing was switched: the stage goes, and with it every trace.
  Error abandon(Error error) {
    Status gone = [&]() -> Status {
      TRY(pending_->remove_switch());
      TRY(stages_->remove());
      return pending_->remove_intent();
    }();
    Error told = rolled_back(std::move(error));
    if (!gone)
      return std::move(told).with_hint(
          "temporary files remain until the next command: " +
          gone.error().text());
    return told;
  }

  Error take_back(Switcher& switcher, Error error) {
    auto left =
        roll_back(ground_, disk_, *pending_, record_, *stages_, switcher);
    if (!left) return not_taken_back(std::move(error), left.error());
    Error told = rolled_back(std::move(error));
    if (left->empty()) return told;
    std::string names;
    for (const Left& path : *left)
      names += (names.empty() ? "" : "; ") + path.text();
    return std::move(told).with_hint(names);
  }

  // Neither done nor as before: no code that promises either.
  Error not_taken_back(Error error, const Error& why) {
    auto aborted = pending_->aborted();
    bool goes_back = !aborted || *aborted;
    return std::move(error)
        .as(Code::kErrno)
        .with_hint((goes_back ? "the next command finishes what could not be "
                                "taken back now: "
                              : "it could not be taken back, and the next "
                                "command completes it: ") +
                   why.text());
  }

  // Drift, what this machine cannot do and Ctrl-C keep their code; anything
  // else that failed is "failed and rolled back".
  static Error rolled_back(Error error) {
    if (error.code() == Code::kDrift || error.code() == Code::kUnsupported ||
        error.err() == EINTR)
      return error;
    const std::string hint =
        error.hint().empty() ? what_helps(error.err()) : error.hint();
    return std::move(error).as(Code::kRolledBack).with_hint(hint);
  }

  static const char* what_helps(int err) {
    switch (err) {
      case EACCES:
      case EPERM:
        return "all is as before; a directory in which names change must be "
               "yours to write (`ls -ld`, `lsattr -d`)";
      case EROFS:
        return "all is as before; it is on a file system that is mounted "
               "read-only";
      case EBUSY:
        return "all is as before; where a file system is mounted nothing can "
               "be moved or removed";
      case ENOSPC:
      case EDQUOT:
        return "all is as before; a commit needs room for the new files beside "
               "the old ones";
      default:
        return "";
    }
  }

  const Ground& ground_;
  const Disk& disk_;
  bool stage_in_state_;
  CommitPlan plan_;
  std::vector<uint32_t> stage_of_;
  SwitchRecord record_;
  std::optional<Pending> pending_;
  std::optional<StageSet> stages_;
  DirWatch watch_;
};

}  // namespace

Result<Fd> lock_root(const Ground& ground) {
  Fd fd = TRY(sys::openat(ground.root, ".", O_RDONLY | O_DIRECTORY));
  Status locked = sys::flock_within(fd.get(), LOCK_EX, ground.lock_wait);
  if (locked) return fd;
  if (locked.error().err() != EWOULDBLOCK)
    return std::unexpected(std::move(locked.error()));
  return std::unexpected(Error(Code::kRolledBack,
                               "another commit is running on this workspace",
                               EWOULDBLOCK)
                             .with_hint("try again when it is done"));
}

Result<CommitRecord> transact(const Ground& ground, std::vector<Item> items,
                              CommitMeta meta, Timing* timing) {
  static const Disk kDisk;
  const Disk& disk = ground.disk != nullptr ? *ground.disk : kDisk;
  Fd lock = TRY(lock_root(ground));
  Hold hold;
  // Held until the record that needs the pre-images is durable; a commit that
  // is completed first has such a record, too.
  auto use = TRY(ground.objects->use());
  TRY(recover_locked(ground, disk));
  Pending pending = TRY(Pending::open(ground.state, disk));
  auto done = [&]() -> Result<CommitRecord> {
    std::set<RelPath> unlocked;
    TRY(take_locks(ground, disk, pending, unlocked));
    if (ground.prepare) TRY(ground.prepare(items, unlocked));
    Transaction first(ground, disk, true);
    auto record = first.run(std::move(items), meta, timing);
    // Same mount, and yet no rename between the two (project quotas,
    // overlays): once more, with a stage inside the workspace.
    if (!record && record.error().err() == EXDEV)
      return Transaction(ground, disk, false)
          .run(first.take_items(), meta, timing);
    return record;
  }();
  Status released = release_locks(ground, disk, pending);
  if (!released && done)
    done->warnings.push_back("a lock file remains until the next command: " +
                             released.error().text());
  return done;
}

}  // namespace stoplog::gate
