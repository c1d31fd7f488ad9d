// SPDX-License-Identifier: Apache-2.0
// The timeline: marks, rollback, checkpoints. A rollback and a checkpoint are
// one thing: a new generation of the journal, with a whole state or going on
// from an older one. Those stay for the marks that they hold, and for the ones
// that go on from them.
#include <algorithm>

#include "base/clock.h"
#include "fs/tree_impl.h"

namespace stoplog::fs {
namespace {

constexpr size_t kBatch = 256;  // records a write

}  // namespace

// Nothing was recorded after it: who looks every second does not fill the
// journal. A young one, for gc counts a reader's hour from when it was made,
// and of this generation, for it would keep an older one.
const Mark* Tree::Impl::standing_barrier() const {
  constexpr int64_t kYoung = 60;
  const std::vector<Mark>& marks = state_.marks();
  if (marks.empty() || !pending_drops_.empty()) return nullptr;
  const Mark& last = marks.back();
  const int64_t age = Clock::real().now().tv_sec - last.time.tv_sec;
  bool stands = last.kind == MarkKind::kBarrier &&
                last.position == state_.position() && age >= 0 &&
                age < kYoung && journal_ &&
                last.generation == journal_->generation();
  return stands ? &last : nullptr;
}

Result<Mark> Tree::mark(MarkKind kind, uint32_t command,
                        std::string_view name) {
  Impl& t = *impl_;
  // Writes in place that began before this mark end before it.
  std::unique_lock no_write(t.epoch_);
  std::unique_lock lock(t.mutex_);
  TRY(t.writable());
  if (const Mark* now = t.standing_barrier(); kind == MarkKind::kBarrier && now)
    return *now;
  Mark mark{.id = t.state_.next_mark(),
            .kind = kind,
            .position = 0,
            .command = command,
            .time = Clock::real().now(),
            .name = std::string(name)};
  TRY(t.append({MarkRecord{mark}}));
  if (kind == MarkKind::kCommandBegin) t.running_.push_back(command);
  if (kind == MarkKind::kCommandEnd) std::erase(t.running_, command);
  if (!t.unsealed_.empty() || kind == MarkKind::kCommandEnd) t.wake_pool();
  return t.state_.marks().back();
}

std::vector<Mark> Tree::marks() const {
  std::shared_lock lock(impl_->mutex_);
  return impl_->state_.marks();
}

uint64_t Tree::changed_by_command() const {
  std::shared_lock lock(impl_->mutex_);
  return impl_->state_.changed_by_command();
}

Position Tree::position() const {
  std::shared_lock lock(impl_->mutex_);
  return impl_->journal_ ? impl_->journal_->position()
                         : impl_->state_.position();
}

Status Tree::Impl::write_state(Journal& journal, const State& state) {
  Status result;
  std::vector<Record> batch;
  auto flush = [&]() -> Status {
    TRY(journal.append(batch, 0));
    batch.clear();
    return {};
  };
  state.snapshot(
      [&](Record record) -> Status {
        batch.push_back(std::move(record));
        return batch.size() < kBatch ? Status() : flush();
      },
      result);
  TRY(std::move(result));
  return flush();
}

Status Tree::Impl::start_generation(const State& state) {
  TRY(segments_->sync());
  OpenRecord open = journal_ ? journal_->open_record() : damaged_open_;
  ++open.generation;
  Position end = journal_ ? journal_->position() : damaged_end_;
  Generations generations = TRY(Generations::list(draft_dir_.get()));
  OlderRecord older =
      TRY(generations.older(end, generations_of(state.marks())));
  if (!older.parts.empty()) end = std::max(end, older.parts.back().last);
  if (!journal_) end = generations.behind_lost(end);
  std::shared_ptr<Journal> next =
      TRY(Journal::create(draft_dir_.get(), open, end, older));
  TRY(write_state(*next, state));
  if (journal_) TRY(journal_->sync());
  TRY(next->publish());
  journal_ = std::move(next);
  state_.set_unwritten(false);
  older_bytes_ = 0;
  return {};
}

// How many generations must be read for the state at a position.
Result<uint32_t> Tree::Impl::depth_of(Position at) const {
  Generations generations = TRY(Generations::list(draft_dir_.get()));
  const auto before = TRY(generations.find(at)).head.from;
  return before ? before->depth + 1 : 1;
}

// Rolling back to and fro shall not make a journal that takes ever longer to
// read.
bool Tree::Impl::goes_on_from(Position at) const {
  auto depth = depth_of(at);
  return depth && *depth < kMostDepth;
}

Status Tree::Impl::start_from(Position at) {
  TRY(segments_->sync());
  OpenRecord open = journal_->open_record();
  ++open.generation;
  FromRecord from = state_.from(at);
  from.depth = TRY(depth_of(at));
  Generations generations = TRY(Generations::list(draft_dir_.get()));
  OlderRecord older = TRY(
      generations.older(journal_->position(), generations_of(state_.marks())));
  std::shared_ptr<Journal> next =
      TRY(Journal::create(draft_dir_.get(), open, journal_->position(), older));
  std::vector<Record> records{std::move(from), DeviceRecord{base_stat_.dev}};
  TRY(next->append(records, 0));
  TRY(journal_->sync());
  TRY(next->publish());
  older_bytes_ += journal_->bytes();
  journal_ = std::move(next);
  return {};
}

Status Tree::checkpoint() { return impl_->checkpoint(); }

Status Tree::Impl::checkpoint() {
  TRY(writable());
  TRY(sync());
  std::unique_lock lock(mutex_);
  TRY(start_generation(state_));
  state_.set_generation(journal_->generation());
  lock.unlock();
  TRY(drop_generations());
  return {};
}

Status Tree::Impl::check_mark(Position at) const {
  std::shared_lock lock(mutex_);
  bool is_mark = std::ranges::any_of(
      state_.marks(), [&](const Mark& mark) { return mark.position == at; });
  return is_mark ? Status{} : fail_errno(EINVAL, "no mark has position {}", at);
}

Result<State> Tree::Impl::state_at(Position at) {
  Replayed replayed = TRY(replay(draft_dir_.get(), at));
  if (replayed.damaged)
    return fail(Code::kCorrupt, "the journal is damaged before that mark: {}",
                replayed.notes.empty() ? "" : replayed.notes.front());
  replayed.state.move_to_device(base_stat_.dev);
  return std::move(replayed.state);
}

// Each base map ends with a mark, which stays as long as an older one does.
size_t Tree::Impl::commits_since(Position at) const {
  return static_cast<size_t>(
      std::ranges::count_if(state_.marks(), [&](const Mark& mark) {
        return mark.kind == MarkKind::kCommit && mark.position > at;
      }));
}

// A later moment at which all was as at that mark, for it had been gone back
// to: less has changed since. Without a commit in between, which is asked
// before.
Position Tree::Impl::nearest_like(Position to) const {
  const std::string name = std::to_string(to);
  for (auto mark = state_.marks().rbegin(); mark != state_.marks().rend();
       ++mark) {
    if (mark->position <= to) break;
    if (mark->kind == MarkKind::kRollback && mark->name == name &&
        state_.can_go_back(mark->position))
      return mark->position;
  }
  return to;
}

Result<Mark> Tree::rollback(Position to) {
  Impl& t = *impl_;
  // Also the way out of a damaged journal: to a mark before the damage.
  bool repairs = t.read_only_;
  std::lock_guard one(t.work_mutex_);
  TRY(t.check_mark(to));
  std::vector<Invalidation> out;
  Observer* observer = t.observer_;
  bool at_once = observer != nullptr && observer->forgets_names();
  Result<Mark> mark;
  for (bool done = false; !done;) {
    size_t commits = 0;
    bool quick = false;
    std::optional<State> target;
    {
      std::shared_lock lock(t.mutex_);
      commits = t.commits_since(to);
      quick =
          !repairs && commits == 0 && t.state_.can_go_back(t.nearest_like(to));
    }
    if (!quick) target = TRY(t.state_at(to));
    if (commits > 0) TRY(t.restore_replaced(*target, to));
    // Most of what must be on disk, while the others need not wait for it.
    if (!repairs) TRY(fsync());
    std::unique_lock no_write(t.epoch_);
    std::unique_lock lock(t.mutex_);
    // A commit came in between: there is more to be put back.
    if (t.commits_since(to) != commits ||
        (!target && !t.state_.can_go_back(t.nearest_like(to))))
      continue;
    done = true;
    // On disk before anything changes here: a failure leaves all as it was.
    bool whole = repairs || commits > 0 || !t.goes_on_from(to);
    if (!target && whole) target = TRY(t.state_at(to));
    if (target) {
      target->succeed(t.state_);
      if (commits > 0) target->touch_held();
      std::vector<Serial> known;
      for (const auto& [serial, slot] : t.by_serial_) known.push_back(serial);
      target->keep_orphans(t.state_, known);
    }
    TRY(whole ? t.start_generation(*target) : t.start_from(to));
    t.read_only_ = false;
    ++t.turns_;
    if (target)
      t.become(std::move(*target), out);
    else
      t.go_back(t.nearest_like(to), at_once, out);
    t.state_.set_unwritten(!whole);
    mark = t.note_rollback(to);
  }
  // Told even when the mark could not be written: it went back all the same.
  if (repairs) t.start_pool();
  if (observer != nullptr) observer->invalidate(out);
  t.wake_pool();  // frees what the past let go, seals what came back
  return mark;
}

Result<Mark> Tree::Impl::note_rollback(Position to) {
  state_.set_generation(journal_->generation());
  TRY(append({MarkRecord{Mark{.id = state_.next_mark(),
                              .kind = MarkKind::kRollback,
                              .position = 0,
                              .command = state_.command(),
                              .time = Clock::real().now(),
                              .name = std::to_string(to)}}}));
  return state_.marks().back();
}

// The live side of a rollback: `next` is the state from now on.
void Tree::Impl::become(State next, std::vector<Invalidation>& out) {
  using Kind = Invalidation::Kind;
  for (const State* state : {&state_, &next})
    for (const auto& [serial, slot] : by_serial_)
      if (const Held* node = state->find(serial))
        for (const auto& [name, child] : node->names)
          out.push_back(
              {.kind = Kind::kDrop, .node = id_of(slot), .name = name});
  state_ = std::move(next);
  for (Slot slot = 1; slot < slots_.size(); ++slot) {
    Live& node = slots_[slot];
    if (!node.used) continue;
    out.push_back({.kind = Kind::kNode, .node = id_of(slot)});
    if (node.serial == 0) continue;
    if (const Held* held = state_.find(node.serial)) {
      node.ino = slot == kRootId ? node.ino : held->ino;
      node.type = held->mode & S_IFMT;
    }
  }
  check_names(out);
  dir_fds_.clear();
  file_fds_.clear();
  {
    std::lock_guard leaf(listings_mutex_);
    listings_.clear();
  }
  unpinned_.clear();
  for (const auto& [serial, node] : state_.nodes()) {
    if (!node->body) continue;
    if (node->body->map.has_lower()) unpinned_.insert(serial);
    unsealed_.insert(serial);  // what was put back past a commit is new
  }
  dead_.clear();
  dead_bytes_ = 0;
  watch_dead();
  state_.remember();
}

// The same by what differs.
void Tree::Impl::go_back(Position to, bool names_at_once,
                         std::vector<Invalidation>& out) {
  State::WentBack what = state_.go_back(
      to, [this](Serial serial) { return by_serial_.contains(serial); });
  tell_went_back(what, names_at_once, out);
  for (Serial serial : what.vanished) unpinned_.erase(serial);
  what.changed.insert(what.changed.end(), what.returned.begin(),
                      what.returned.end());
  for (Serial serial : what.changed) {
    unpinned_.erase(serial);
    const Held* held = state_.find(serial);
    if (held == nullptr) continue;
    if (held->body) unsealed_.insert(serial);
    if (held->body && held->body->map.has_lower()) unpinned_.insert(serial);
    auto slot = by_serial_.find(serial);
    if (slot == by_serial_.end()) continue;
    Live& live = slots_[slot->second];
    if (slot->second != kRootId) live.ino = held->ino;
    live.type = held->mode & S_IFMT;
  }
  check_names(out);
  dir_fds_.clear();
  file_fds_.clear();
  {
    std::lock_guard leaf(listings_mutex_);
    listings_.clear();
  }
  dead_.clear();
  dead_bytes_ = 0;
}

// What keeps its content and loses or gets back its name can be told later:
// whoever comes by that name asks, and the answer has the attributes.
void Tree::Impl::tell_went_back(const State::WentBack& what, bool names_at_once,
                                std::vector<Invalidation>& out) {
  using Kind = Invalidation::Kind;
  constexpr size_t kMany = 2000;
  names_at_once = names_at_once && what.names.size() >= kMany;
  if (names_at_once) out.push_back({.kind = Kind::kEveryName});
  for (const auto& [serial, name] : what.names) {
    if (names_at_once) break;
    if (auto dir = by_serial_.find(serial); dir != by_serial_.end())
      out.push_back(
          {.kind = Kind::kDrop, .node = id_of(dir->second), .name = name});
  }
  auto tell = [&](Serial serial, bool later) {
    if (auto slot = by_serial_.find(serial); slot != by_serial_.end())
      out.push_back(
          {.kind = Kind::kNode, .node = id_of(slot->second), .later = later});
  };
  for (Serial serial : what.changed) tell(serial, false);
  for (Serial serial : what.returned) tell(serial, true);
  for (Serial serial : what.vanished) tell(serial, true);
}

// The name may lead elsewhere now: the kernel must ask again.
void Tree::Impl::tell_name(const RelPath& path,
                           std::vector<Invalidation>& out) {
  if (path.is_root()) return;  // it has no name
  const Held* dir = &state_.root();
  const RelPath parent = path.parent();
  for (std::string_view name : parent.components()) {
    auto serial = State::child(*dir, name);
    dir = serial ? state_.find(*serial) : nullptr;
    if (dir == nullptr) return;
  }
  auto it = by_serial_.find(dir->serial);
  if (it != by_serial_.end())
    out.push_back({.kind = Invalidation::Kind::kExpire,
                   .node = id_of(it->second),
                   .name = std::string(path.name())});
}

}  // namespace stoplog::fs
