// SPDX-License-Identifier: Apache-2.0
// Giving back what nothing needs any more, beside a living mount. The order
// makes a crash harmless: first a durable generation without the marks that
// go, then older generations, then content.
#include "fs/gc.h"

#include <algorithm>

#include "base/clock.h"
#include "base/log.h"
#include "base/sys_node.h"
#include "fs/history.h"
#include "fs/layout.h"
#include "fs/standing.h"
#include "fs/tree_impl.h"

namespace stoplog::fs {
namespace {

constexpr int64_t kLookAgain = 3600;  // seconds
constexpr uint64_t kPage = 4096;

std::function<bool(const Mark&)> among(const std::set<Position>& keep) {
  return [&keep](const Mark& mark) { return keep.contains(mark.position); };
}

}  // namespace

std::set<uint32_t> generations_of(const std::vector<Mark>& marks) {
  std::set<uint32_t> numbers;
  for (const Mark& mark : marks) numbers.insert(mark.generation);
  return numbers;
}

std::set<Position> marks_to_keep(const std::vector<Mark>& marks,
                                 const GcPolicy& policy, const timespec& now,
                                 size_t drop) {
  uint32_t last = 0;
  for (const Mark& mark : marks) last = std::max(last, mark.command);
  std::set<Position> keep;
  for (const Mark& mark : marks) {
    int64_t age = now.tv_sec - mark.time.tv_sec;
    bool of_command = mark.kind == MarkKind::kCommandBegin ||
                      mark.kind == MarkKind::kCommandEnd;
    bool sacred = mark.kind == MarkKind::kNamed || &mark == &marks.back() ||
                  (of_command && mark.command == last);
    if (mark.kind == MarkKind::kBarrier && age < policy.barrier_age)
      sacred = true;
    if (policy.stood_on.contains(mark.position)) sacred = true;
    if (mark.kind == MarkKind::kCommit) {
      if (!keep.empty()) keep.insert(mark.position);
      continue;
    }
    bool old = mark.kind == MarkKind::kBarrier ||
               (policy.max_age && age > static_cast<int64_t>(*policy.max_age));
    if (!sacred && old) continue;
    if (!sacred && drop > 0) {
      --drop;
      continue;
    }
    keep.insert(mark.position);
  }
  return keep;
}

Result<GcReport> Tree::gc(const GcPolicy& policy) { return impl_->gc(policy); }

// How many of the oldest marks must go for what is left to fit.
Result<std::set<Position>> Tree::Impl::choose_marks(
    const std::vector<Mark>& marks, const GcPolicy& policy, Position until) {
  const timespec now = Clock::real().now();
  std::set<Position> keep = marks_to_keep(marks, policy, now);
  if (!policy.max_bytes) return keep;
  auto fits = [&](const std::set<Position>& some) -> Result<bool> {
    RangeSet needed;
    TRY(add_needed(
        draft_dir_.get(),
        {.until = until, .keep = among(some), .also = policy.stood_on},
        needed));
    return needed.bytes() <= *policy.max_bytes;
  };
  if (TRY(fits(keep))) return keep;
  size_t low = 0, high = keep.size();  // low does not fit
  while (high - low > 1) {
    size_t middle = low + (high - low) / 2;
    if (TRY(fits(marks_to_keep(marks, policy, now, middle))))
      high = middle;
    else
      low = middle;
  }
  return marks_to_keep(marks, policy, now, high);
}

// Removes generations before the present one that hold no mark.
Result<uint64_t> Tree::Impl::drop_generations() {
  std::set<uint32_t> needed;
  uint32_t present = 0;
  {
    std::shared_lock lock(mutex_);
    needed = generations_of(state_.marks());
    present = journal_->generation();
  }
  // And what those go on from, which is always older.
  Generations generations = TRY(Generations::list(draft_dir_.get()));
  TRY(generations.check_present(needed));
  std::vector<Generation> all = TRY(generations.all());
  for (Position at : TRY(stood_on(generations)))
    needed.insert(TRY(generations.find(at)).number);
  for (auto it = all.rbegin(); it != all.rend(); ++it)
    if (it->head.from && (it->number >= present || needed.contains(it->number)))
      needed.insert(TRY(generations.find(it->head.from->position)).number);
  uint64_t removed = 0;
  Fd dir = TRY(sys::openat(draft_dir_.get(), layout::kJournalDir,
                           O_RDONLY | O_DIRECTORY));
  for (const Generation& each : all) {
    if (each.number >= present || needed.contains(each.number)) continue;
    TRY(sys::unlinkat(dir.get(), layout::generation_name(each.number)));
    ++removed;
  }
  if (removed == 0) return removed;
  TRY(sys::fsync(dir.get()));
  (void)TRY(Generations::list(draft_dir_.get())).tell_newest();
  return removed;
}

Status Tree::Impl::free_segments(const RangeSet& needed, uint32_t last,
                                 bool dry_run, GcReport& report) {
  for (uint32_t number : TRY(segments_->list())) {
    if (number > last) continue;
    sys::Stat before =
        TRY(sys::statat(segments_->dir(), layout::segment_name(number)));
    if (!needed.has(number)) {
      if (!dry_run) TRY(segments_->remove(number));
      ++report.segments;
      // What a fork shares is freed by the last of them.
      if (before.nlink == 1) report.bytes += before.blocks * 512;
      continue;
    }
    if (before.nlink > 1 || !segments_->is_mutable(number)) continue;
    uint64_t gaps = 0;
    for (const SegmentRange& gap : needed.gaps(number, before.size)) {
      uint64_t begin = (gap.at + kPage - 1) / kPage * kPage;
      uint64_t end = (gap.at + gap.length) / kPage * kPage;
      if (begin >= end) continue;
      gaps += end - begin;
      if (dry_run) continue;
      auto done = segments_->punch({number, begin, end - begin});
      if (!done && done.error().err() == EOPNOTSUPP) break;
      TRY(std::move(done));
    }
    if (dry_run) {
      report.bytes += std::min(gaps, before.blocks * 512);
      continue;
    }
    sys::Stat after =
        TRY(sys::statat(segments_->dir(), layout::segment_name(number)));
    report.bytes +=
        (before.blocks - std::min(before.blocks, after.blocks)) * 512;
  }
  return {};
}

Result<GcReport> Tree::Impl::gc(const GcPolicy& policy) {
  std::lock_guard one(work_mutex_);
  return gc_locked(policy);
}

// With work_mutex_ held: no rollback and no fork is under way. What a pin is
// copying is claimed.
Result<GcReport> Tree::Impl::gc_locked(const GcPolicy& asked) {
  TRY(writable());
  GcReport report;
  std::vector<Mark> marks;
  Position until = 0;
  {
    std::shared_lock lock(mutex_);
    marks = state_.marks();
    until = journal_->position();
  }
  // After the marks: who stands on one that is not among them took it just now.
  GcPolicy policy = asked;
  Generations generations = TRY(Generations::list(draft_dir_.get()));
  policy.stood_on = TRY(stood_on(generations));
  std::set<Position> keep = TRY(choose_marks(marks, policy, until));
  // What the marks of a lost generation need is not known.
  std::vector<Mark> kept;
  for (const Mark& mark : marks)
    if (keep.contains(mark.position)) kept.push_back(mark);
  TRY(generations.check_present(generations_of(kept)));
  report.marks = marks.size() - keep.size();
  if (!policy.dry_run) TRY(sync());
  RangeSet needed;
  uint32_t last = 0, present = 0;
  {
    std::unique_lock lock(mutex_);
    add_needed(state_, needed);  // open files without a name, too
    last = segments_->seal_all();
    // What was allocated and is not yet on record: asked for last, so that
    // nothing comes to these segments afterwards.
    for (const SegmentRange& range : segments_->claimed()) needed.add(range);
    if (!policy.dry_run) {
      // Marks that were taken meanwhile stay.
      for (const Mark& mark : state_.marks())
        if (mark.position > until) keep.insert(mark.position);
      std::vector<Mark> before = state_.marks();
      state_.keep_marks(keep);
      if (auto started = start_generation(state_); !started) {
        state_.set_marks(std::move(before));
        return std::unexpected(std::move(started).error());
      }
      state_.set_generation(journal_->generation());
      dead_.clear();
      dead_bytes_ = crumbs_ = 0;
    }
    present = journal_->generation();
  }
  if (!policy.dry_run) report.generations = TRY(drop_generations());
  // With a dry run the present generation's marks are in its file only.
  TRY(add_needed(
      draft_dir_.get(),
      {.until = policy.dry_run ? until : kEnd,
       .keep = among(keep),
       .generation =
           [&](uint32_t number) { return policy.dry_run || number < present; },
       .also = policy.stood_on},
      needed));
  {
    std::shared_lock lock(mutex_);
    keep_seals_whole(state_.seal_table(), needed);
  }
  report.kept_bytes = needed.bytes();
  TRY(free_segments(needed, last, policy.dry_run, report));
  if (!policy.dry_run) {
    std::unique_lock lock(mutex_);
    state_.drop_seals([&](uint32_t segment, uint64_t at, uint32_t length) {
      return segment <= last &&
             !needed.covers({.segment = segment, .at = at, .length = length});
    });
    std::lock_guard leaf(verified_mutex_);
    verified_.clear();
  }
  return report;
}

void Tree::set_history(const GcPolicy& policy) {
  std::lock_guard one(impl_->work_mutex_);
  impl_->history_ = std::make_unique<GcPolicy>(policy);
}

// The segments have outgrown what the policy gives them. Looks again only after
// much was written: what is live may be larger than that.
Result<bool> Tree::Impl::has_outgrown() {
  if (!history_->max_bytes) return false;
  uint64_t written = segments_->allocated();
  uint64_t step = std::max<uint64_t>(*history_->max_bytes / 4, kReclaimAt);
  if (gc_at_ == 0) gc_at_ = written + step;
  if (written < gc_at_) return false;
  gc_at_ = written + step;
  return TRY(segments_->disk_bytes()) > *history_->max_bytes;
}

// Marks have become older than the policy keeps them. Looks once an hour.
bool Tree::Impl::has_aged() {
  const timespec now = Clock::real().now();
  if (!history_->max_age || now.tv_sec - aged_at_ < kLookAgain) return false;
  aged_at_ = now.tv_sec;
  std::shared_lock lock(mutex_);
  std::set<Position> keep = marks_to_keep(state_.marks(), *history_, now);
  return std::ranges::any_of(state_.marks(), [&](const Mark& mark) {
    return mark.kind != MarkKind::kBarrier && !keep.contains(mark.position);
  });
}

// Small files that come and go in one command leave pieces that are too small
// to be given back one by one.
bool Tree::Impl::has_crumbs() {
  constexpr uint64_t kFew = 32u << 20;
  std::shared_lock lock(mutex_);
  return crumbs_ >= std::max(kFew, state_.live_bytes() / 4);
}

Status Tree::Impl::gc_if_due() {
  bool is_due = history_ && (has_aged() || TRY(has_outgrown()));
  if (!is_due && !has_crumbs()) return {};
  crumbs_ = 0;  // tried; not again at once when it fails
  auto report = gc_locked(is_due ? *history_ : GcPolicy{});
  // Housekeeping: a commit, which waits for what is queued, goes on without.
  if (!report)
    log::warn("cannot give back history: {}", report.error().text());
  else
    log::info("gave back {} bytes of history, {} marks", report->bytes,
              report->marks);
  return {};
}

}  // namespace stoplog::fs
