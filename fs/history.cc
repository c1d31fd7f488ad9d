// SPDX-License-Identifier: Apache-2.0
#include "fs/history.h"

#include <algorithm>
#include <unordered_set>

namespace stoplog::fs {
namespace {

void add_file(const Held& node, RangeSet& needed) {
  if (!node.body) return;
  for (const Extent& e : node.body->map.all())
    if (e.where == Where::kSegment)
      needed.add({.segment = e.segment, .at = e.at, .length = e.length});
  if (node.body->has_base) needed.add(node.body->base);
}

void add_deleted(const State& state, RangeSet& needed) {
  for (const auto& [path, deleted] : state.deleted())
    if (deleted.content.segment != 0) needed.add(deleted.content);
}

// What a generation's first record goes on from; without one, nothing.
Result<State> start_of(Generations& all, const JournalHead& head) {
  State state;
  if (head.from) {
    Replayed before = TRY(replay(all, head.from->position, Seals::kOwn));
    if (before.damaged)
      return fail(Code::kCorrupt, "the journal is damaged: {}",
                  before.notes.empty() ? "" : before.notes.front());
    state = std::move(before.state);
  }
  state.set_generation(head.open.generation);
  return state;
}

}  // namespace

// Which files and whether deletions may refer to new ranges since the last
// mark that counts.
struct NeededRanges::Changed {
  std::unordered_set<Serial> files;
  bool deletions = false;
  bool everything = false;

  void note(const Record& record) {
    if (const auto* r = std::get_if<ExtentRecord>(&record))
      files.insert(r->serial);
    else if (const auto* t = std::get_if<TakeRecord>(&record))
      files.insert(t->serial);
    else if (const auto* p = std::get_if<PinRecord>(&record))
      files.insert(p->serial);
    else if (const auto* n = std::get_if<NodeRecord>(&record))
      files.insert(n->serial);
    // The mark that it goes on from may be one that does not count.
    else if (std::holds_alternative<FromRecord>(record))
      everything = true;
    // A base that was taken can go from its file to the list of deletions.
    else if (std::holds_alternative<UnlinkRecord>(record) ||
             std::holds_alternative<RenameRecord>(record) ||
             std::holds_alternative<DeletedRecord>(record) ||
             std::holds_alternative<BaseMapRecord>(record))
      deletions = true;
  }
  void collect(const State& state, RangeSet& needed) {
    if (everything)
      for (const auto& [serial, node] : state.nodes()) add_file(*node, needed);
    else
      for (Serial serial : files)
        if (const Held* node = state.find(serial)) add_file(*node, needed);
    if (deletions || everything) add_deleted(state, needed);
    files.clear();
    deletions = everything = false;
  }
};

Status walk_history(int draft_dir, const HistoryOptions& options,
                    const HistoryVisitor& visitor) {
  Generations generations = TRY(Generations::list(draft_dir));
  for (const Generation& each : TRY(generations.all())) {
    if (options.generation && !options.generation(each.number)) continue;
    const JournalHead& head = each.head;
    if (head.first > options.until) break;
    State state = TRY(start_of(generations, head));
    Position until = std::min(each.last, options.until);
    Fd fd =
        TRY_CTX(open_generation(draft_dir, each.number, O_RDONLY), "journal");
    ScanEnd end = TRY(journal_scan(
        fd.get(), head, until, [&](const Logged& logged) -> Status {
          if (visitor.before) TRY(visitor.before(state, logged));
          TRY_CTX(go_on(head, logged, state),
                  fmt::format("record {} cannot be applied", logged.position));
          if (visitor.after) TRY(visitor.after(state, logged));
          return {};
        }));
    TRY(check_whole(each, end, until));
    state.drop_orphans();
    if (visitor.end) TRY(visitor.end(state));
  }
  return {};
}

void add_needed(const State& state, RangeSet& needed) {
  for (const auto& [serial, node] : state.nodes()) add_file(*node, needed);
  add_deleted(state, needed);
}

void keep_seals_whole(const State::SealTable& seals, RangeSet& needed) {
  std::vector<SegmentRange> more;
  for (const auto& [segment, table] : seals) {
    const std::vector<SegmentRange> ranges = needed.in(segment);
    for (const auto& [at, seal] : table) {
      // The last range that begins before the seal ends.
      auto behind = std::ranges::lower_bound(ranges, at + seal.length, {},
                                             &SegmentRange::at);
      if (behind == ranges.begin()) continue;
      const SegmentRange& range = *std::prev(behind);
      if (range.at + range.length > at)
        more.push_back({.segment = segment, .at = at, .length = seal.length});
    }
  }
  for (const SegmentRange& range : more) needed.add(range);
}

NeededRanges::NeededRanges(std::function<bool(const Mark&)> keep,
                           std::set<Position> also)
    : keep_(std::move(keep)),
      also_(std::move(also)),
      changed_(std::make_unique<Changed>()) {}
NeededRanges::~NeededRanges() = default;

void NeededRanges::after(const State& state, const Logged& logged) {
  changed_->note(logged.record);
  bool counts = std::holds_alternative<MarkRecord>(logged.record) &&
                (!keep_ || keep_(state.marks().back()));
  if (counts || also_.contains(logged.position))
    changed_->collect(state, needed_);
}

void NeededRanges::end(const State& state) {
  *changed_ = {};
  last_ = {};
  add_needed(state, last_);
  for (const auto& [segment, table] : state.seal_table())
    for (const auto& [at, seal] : table)
      seals_[segment].insert_or_assign(at, seal);
}

RangeSet NeededRanges::take() {
  needed_.merge(last_);
  keep_seals_whole(seals_, needed_);
  return std::move(needed_);
}

Status add_needed(int draft_dir, const NeededOptions& options,
                  RangeSet& total) {
  NeededRanges needed(options.keep, options.also);
  HistoryVisitor visitor;
  visitor.after = [&](const State& state, const Logged& logged) -> Status {
    needed.after(state, logged);
    return {};
  };
  visitor.end = [&](const State& state) -> Status {
    needed.end(state);
    return {};
  };
  TRY(walk_history(draft_dir,
                   {.until = options.until, .generation = options.generation},
                   visitor));
  total.merge(needed.take());
  return {};
}

}  // namespace stoplog::fs
