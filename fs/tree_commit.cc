// SPDX-License-Identifier: Apache-2.0
// The new base after a commit, an undo or a discard: what the real tree has
// from then on, told in records of the journal and applied at once.
#include <algorithm>
#include <tuple>

#include "base/clock.h"
#include "base/log.h"
#include "fs/tree_impl.h"

namespace stoplog::fs {
namespace {

constexpr size_t kBaseBatch = 500;  // changes a base map record
constexpr uint64_t kPinnedBase = 64u << 20;

}  // namespace

// Went back since then, and no commit in between: what is held is another tree
// than the one that was reviewed, however long ago it was touched.
bool Tree::Impl::was_rolled_back(Position reviewed) const {
  for (const Mark& mark : state_.marks()) {
    if (mark.position <= reviewed) continue;
    if (mark.kind == MarkKind::kCommit) return false;
    if (mark.kind == MarkKind::kRollback) return true;
  }
  return false;
}

// The mark of this commit, when its base map is in the journal.
std::optional<Mark> Tree::Impl::told_before(Position reviewed,
                                            const ToldBy& told) const {
  if (told.id == 0) return std::nullopt;
  const bool by_id = !state_.told().empty();
  if (by_id && std::ranges::find(state_.told(), told.id) == state_.told().end())
    return std::nullopt;
  std::optional<Mark> found;
  for (const Mark& mark : state_.marks())
    if (mark.kind == MarkKind::kCommit &&
        (by_id || (mark.position > reviewed &&
                   std::tie(told.since.tv_sec, told.since.tv_nsec) <
                       std::tie(mark.time.tv_sec, mark.time.tv_nsec))))
      found = mark;
  // It may have been let go since.
  if (by_id && !found) found.emplace();
  return found;
}

Result<Mark> Tree::commit_base(Position reviewed,
                               std::span<const BaseChange> changes,
                               const ToldBy& told) {
  Impl& t = *impl_;
  TRY(t.writable());
  // Parents first: a new directory must have a base before what is in it. But
  // moves before all else: something may stand where one began.
  std::vector<BaseChange> sorted(changes.begin(), changes.end());
  std::ranges::sort(sorted, {}, [](const BaseChange& change) {
    return std::pair(!change.from, std::cref(change.path).get());
  });
  // Removals last and from the bottom up: a directory is empty when it goes.
  auto removed = std::ranges::stable_partition(
      sorted, [](const BaseChange& change) { return change.now.has_value(); });
  std::ranges::reverse(removed);
  std::vector<Invalidation> out;
  Mark mark;
  {
    std::unique_lock no_write(t.epoch_);
    std::unique_lock lock(t.mutex_);
    if (auto before = t.told_before(reviewed, told)) return *before;
    if (t.was_rolled_back(reviewed)) reviewed = 0;
    // The held names that the kernel may know.
    struct Before {
      Serial dir;
      std::string name;
      Serial child;
    };
    std::vector<Before> shown;
    for (const auto& [serial, slot] : t.by_serial_)
      if (const Held* dir = t.state_.find(serial))
        for (const auto& [name, child] : dir->names)
          if (child != 0) shown.push_back({serial, name, child});
    std::vector<Record> records;
    if (told.id != 0)
      records.push_back(
          ToldRecord{.follows = !sorted.empty(), .commits = {told.id}});
    for (size_t at = 0; at < sorted.size(); at += kBaseBatch) {
      size_t end = std::min(at + kBaseBatch, sorted.size());
      BaseMapRecord record{
          .reviewed = reviewed, .more = end < sorted.size(), .changes = {}};
      record.changes.assign(sorted.begin() + static_cast<long>(at),
                            sorted.begin() + static_cast<long>(end));
      records.push_back(std::move(record));
    }
    records.push_back(MarkRecord{Mark{.id = t.state_.next_mark(),
                                      .kind = MarkKind::kCommit,
                                      .position = 0,
                                      .command = t.state_.command(),
                                      .time = Clock::real().now(),
                                      .name = {}}});
    for (const BaseChange& change : sorted) {
      t.tell_name(change.path, out);
      if (change.from) t.tell_name(*change.from, out);
    }
    TRY(t.append(std::move(records)));
    ++t.turns_;
    mark = t.state_.marks().back();
    for (Slot slot = 1; slot < t.slots_.size(); ++slot)
      if (t.slots_[slot].used && t.slots_[slot].serial != 0)
        out.push_back(
            {.kind = Invalidation::Kind::kNode, .node = t.id_of(slot)});
    // Names that the draft had deleted are now absent in the lower as well,
    // and its own are the lower's; only what an undo or a discard took away
    // shows differently.
    for (const Before& s : shown) {
      const Held* dir = t.state_.find(s.dir);
      if (dir == nullptr || State::child(*dir, s.name) == s.child) continue;
      out.push_back({.kind = Invalidation::Kind::kDrop,
                     .node = t.id_of(t.by_serial_[s.dir]),
                     .name = s.name});
    }
    // What was given back may be a name of a file that is known by another.
    t.check_names(out);
    t.dir_fds_.clear();
    t.file_fds_.clear();
    std::lock_guard leaf(t.listings_mutex_);
    t.listings_.clear();
  }
  if (Observer* observer = t.observer_) observer->invalidate(out);
  t.pin_bases(sorted);
  return mark;
}

// What stays held over a new base must still be comparable with it when the
// real file is edited next. Best effort: without a copy that is drift.
void Tree::Impl::pin_bases(std::span<const BaseChange> changes) {
  std::vector<Serial> held;
  {
    std::unique_lock lock(mutex_);
    for (const BaseChange& change : changes) {
      size_t link = 0;
      const Held* node =
          change.now ? state_.find_path(change.path, &link) : nullptr;
      if (node != nullptr && node->body && node->base &&
          !node->body->has_base && node->body->lower.size <= kPinnedBase)
        held.push_back(node->serial);
    }
  }
  for (Serial serial : held)
    if (auto pinned = pin(serial, PinWhat::kBase, PinRoom::kAny); !pinned)
      log::warn("a base was not kept: {}", pinned.error().text());
}

}  // namespace stoplog::fs
