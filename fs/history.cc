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

// Which files and whether deletions may refer to new ranges since the last
// mark that counts.
struct Changed {
  std::unordered_set<Serial> files;
  bool deletions = false;

  void note(const Record& record) {
    if (const auto* r = std::get_if<ExtentRecord>(&record))
      files.insert(r->serial);
    else if (const auto* t = std::get_if<TakeRecord>(&record))
      files.insert(t->serial);
    else if (const auto* p = std::get_if<PinRecord>(&record))
      files.insert(p->serial);
    else if (const auto* n = std::get_if<NodeRecord>(&record))
      files.insert(n->serial);
    // A base that was taken can go from its file to the list of deletions.
    else if (std::holds_alternative<UnlinkRecord>(record) ||
             std::holds_alternative<RenameRecord>(record) ||
             std::holds_alternative<DeletedRecord>(record) ||
             std::holds_alternative<BaseMapRecord>(record))
      deletions = true;
  }
  void collect(const State& state, RangeSet& needed) {
    for (Serial serial : files)
      if (const Held* node = state.find(serial)) add_file(*node, needed);
    if (deletions) add_deleted(state, needed);
    files.clear();
    deletions = false;
  }
};

}  // namespace

Status walk_history(int draft_dir, const HistoryOptions& options,
                    const HistoryVisitor& visitor) {
  for (uint32_t number : TRY(list_generations(draft_dir))) {
    if (options.generation && !options.generation(number)) continue;
    Fd fd = TRY_CTX(open_generation(draft_dir, number, O_RDONLY), "journal");
    JournalHead head = TRY(read_head(fd.get()));
    if (head.first > options.until) break;
    State state;
    state.set_generation(head.open.generation);
    ScanEnd end = TRY(journal_scan(
        fd.get(), head, options.until, [&](const Logged& logged) -> Status {
          if (visitor.before) TRY(visitor.before(state, logged));
          TRY_CTX(state.apply(logged),
                  fmt::format("record {} cannot be applied", logged.position));
          if (visitor.after) TRY(visitor.after(state, logged));
          return {};
        }));
    if (!end.damage.empty())
      return fail(Code::kCorrupt, "the journal is damaged: record {} is lost",
                  end.damage.front().first_lost);
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

Status add_needed(int draft_dir, const NeededOptions& options,
                  RangeSet& total) {
  Changed changed;
  RangeSet needed, last;
  State::SealTable seals;
  HistoryVisitor visitor;
  visitor.after = [&](const State& state, const Logged& logged) -> Status {
    changed.note(logged.record);
    if (std::holds_alternative<MarkRecord>(logged.record) &&
        (!options.keep || options.keep(state.marks().back())))
      changed.collect(state, needed);
    return {};
  };
  visitor.end = [&](const State& state) -> Status {
    changed = {};
    last = {};
    add_needed(state, last);
    for (const auto& [segment, table] : state.seal_table())
      for (const auto& [at, seal] : table)
        seals[segment].insert_or_assign(at, seal);
    return {};
  };
  TRY(walk_history(draft_dir,
                   {.until = options.until, .generation = options.generation},
                   visitor));
  needed.merge(last);
  keep_seals_whole(seals, needed);
  total.merge(needed);
  return {};
}

}  // namespace stoplog::fs
