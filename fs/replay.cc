// SPDX-License-Identifier: Apache-2.0
#include "fs/replay.h"

#include <algorithm>
#include <iterator>

#include <fmt/format.h>

#include <map>
#include <set>

namespace stoplog::fs {
namespace {

constexpr size_t kMostNotes = 20;  // a ruined journal must not flood a terminal

void note(std::vector<std::string>& notes, std::string text) {
  if (notes.size() < kMostNotes) notes.push_back(std::move(text));
}

// What must be read for the state at `until`: from the newest generation back
// to one that holds a whole state. When one of them cannot be found, what came
// after it is all that there is to show.
Result<std::vector<Generation>> find_sources(Generations& all, Position until,
                                             Replayed& result) {
  std::vector<Generation> sources;
  for (Position at = until;;) {
    if (sources.size() == kMostDepth)
      return fail(Code::kCorrupt, "the journal goes on from too much");
    auto found = all.find(at);
    if (!found && (sources.empty() || found.error().code() == Code::kErrno))
      return std::unexpected(std::move(found).error());
    if (!found) {
      result.damaged = true;
      note(result.notes,
           fmt::format("the journal is damaged: generation {} goes on from "
                       "record {}, which is lost: {}",
                       sources.back().number, at, found.error().text()));
      return sources;
    }
    sources.push_back(std::move(*found));
    sources.back().last = std::min(at, sources.back().last);
    if (!sources.back().head.from) return sources;
    at = sources.back().head.from->position;
  }
}

class Replay {
 public:
  Replay(int draft_dir, Replayed& result)
      : draft_dir_(draft_dir), result_(result) {}

  Status read(const Generation& source) {
    Position until = source.last;
    begun_ = counted_ = source.head.first == 1;
    result_.head = source.head;
    result_.generation = source.head.open.generation;
    result_.state.set_generation(result_.generation);
    Fd fd = TRY_CTX(open_generation(draft_dir_, source.number, O_RDONLY),
                    "journal");
    result_.end = TRY(journal_scan(fd.get(), source.head, until,
                                   [&](const Logged& logged) -> Status {
                                     ++result_.records;
                                     take(source, logged);
                                     return {};
                                   }));
    result_.bytes += result_.end.end;
    read_to_[source.number] = {result_.end.end, result_.end.sequence};
    for (const Damage& gap : result_.end.damage) {
      if (gap.first_lost > until) continue;  // behind what is asked for
      result_.damaged = true;
      note(result_.notes,
           fmt::format("the journal is damaged: records {} to {} are lost",
                       gap.first_lost, gap.last_lost));
    }
    if (!begun_) {
      result_.damaged = true;
      note(result_.notes, fmt::format("generation {} of the journal lost its "
                                      "beginning",
                                      source.number));
    }
    if (until == kEnd || result_.end.sequence >= until) return {};
    result_.damaged = true;
    note(result_.notes,
         fmt::format("the journal is damaged: records {} to {} are lost",
                     result_.end.sequence + 1, until));
    return {};
  }

  // How far each generation was applied.
  struct ReadTo {
    uint64_t offset = 0;
    Position sequence = 0;
  };
  const std::map<uint32_t, ReadTo>& read_to() const { return read_to_; }

  // The last that was read holds neither a whole state nor what it goes on
  // from.
  bool lost_beginning() const { return !begun_; }
  // It holds a whole state but for what is counted.
  bool lost_table() const { return begun_ && !counted_; }

  void finish() {
    // After a gap, records can refer to what was lost.
    for (const auto& [position, why] : refused_) {
      result_.damaged = true;
      note(result_.notes,
           fmt::format("record {} cannot be applied: {}", position, why));
    }
    if (result_.end.torn > 0 && !result_.end.stopped)
      note(result_.notes,
           fmt::format("{} bytes of an unfinished record at the end are cut",
                       result_.end.torn));
    result_.state.drop_orphans();
  }

 private:
  void take(const Generation& source, const Logged& logged) {
    begun_ = begun_ || source.head.is_from(logged.position) ||
             std::holds_alternative<StartRecord>(logged.record);
    counted_ = counted_ || source.head.is_from(logged.position) ||
               std::holds_alternative<TableRecord>(logged.record);
    auto applied = go_on(source.head, logged, result_.state);
    if (!applied) refused_.emplace(logged.position, applied.error().text());
    // What the live tree refused as well did not happen.
    if (const auto* known = std::get_if<RefusedRecord>(&logged.record))
      for (Position position : known->positions) refused_.erase(position);
  }

  const int draft_dir_;
  Replayed& result_;
  bool begun_ = false;
  bool counted_ = false;
  std::map<Position, std::string> refused_;
  std::map<uint32_t, ReadTo> read_to_;
};

// Seals speak of bytes, not of moments: those that were made after what a
// generation goes on from, or after the moment that is asked for, hold all the
// same. A mark comes before the seals of what it froze. What was applied has
// given its own.
Status add_later_seals(Generations& all, const Generation& first,
                       const std::map<uint32_t, Replay::ReadTo>& read_to,
                       State& state) {
  const uint16_t wanted = record_type(SealRecord{});
  // Those of a generation that is lost are lost with it.
  for (const Generation& each : TRY(all.readable(first.head.first))) {
    Fd fd = TRY_CTX(open_generation(all.draft_dir(), each.number, O_RDONLY),
                    "journal");
    Replay::ReadTo from{each.head.size, each.head.first};
    if (auto read = read_to.find(each.number); read != read_to.end())
      from = read->second;
    TRY(scan_frames(
        fd.get(), from.offset, from.sequence, each.head.open.draft,
        [&](const Frame& frame) -> Result<bool> {
          if (frame.type != wanted) return true;
          if (auto seal = decode(frame.type, frame.payload))
            state.add_seal(std::get<SealRecord>(*seal));
          return true;
        },
        each.last));
  }
  return {};
}

// Of a newest generation without a beginning nothing can be said; the end of
// the one before it has the marks that lead out of there, and what was counted.
Status show_older(Generations& all, bool is_begun, Replayed& result) {
  auto older = replay(all, result.head.first - 1, Seals::kAll);
  if (!older) return {};  // nothing to show, and that was said
  if (is_begun) {
    result.state.count_on(older->state);
    return {};
  }
  result.state = std::move(older->state);
  for (std::string& text : older->notes) note(result.notes, std::move(text));
  return {};
}

// Base maps as the frames tell them. Each ends with the mark of its commit, so
// a mark without one, or one that begins behind a gap, is a map that is lost.
class BaseMaps {
 public:
  explicit BaseMaps(Position after) : after_(after) {}

  void begin(Position seen, bool is_newest) {
    seen_ = seen;
    is_newest_ = is_newest;
  }

  Status take(const Frame& frame) {
    bool is_next = frame.sequence == seen_ + 1;
    seen_ = frame.sequence;
    if (is_newest_ && is_any<TableRecord, FromRecord>(frame.type))
      return take_marks(frame);
    if (frame.sequence <= after_) return {};
    if (is_any<BaseMapRecord>(frame.type)) return take_map(frame, is_next);
    if (is_torn_ || (is_open_ && !is_next)) return lost(frame.sequence);
    if (is_any<MarkRecord>(frame.type)) TRY(take_mark(frame, is_next));
    return end();
  }

  // Of a generation.
  Status end() {
    if (is_torn_) return lost(seen_ + 1);
    // One whose last record was never written is none.
    if (is_open_) maps_.pop_back();
    is_open_ = false;
    return {};
  }

  Result<std::vector<BaseMapRecord>> finish() {
    for (Position position : told_)
      if (!commits_.contains(position)) return lost(position);
    return std::move(maps_);
  }

 private:
  template <typename... R>
  static bool is_any(uint16_t type) {
    return ((type == record_type(R{})) || ...);
  }
  static std::unexpected<Error> lost(Position commit) {
    return fail(Code::kCorrupt,
                "the journal is damaged: what the commit of record {} replaced "
                "is lost",
                commit);
  }

  Status take_map(const Frame& frame, bool is_next) {
    // A gap before it may have had its beginning.
    is_torn_ = is_torn_ || !is_next;
    auto record = decode(frame.type, frame.payload);
    if (!record) {
      is_torn_ = true;
      return {};
    }
    auto& map = std::get<BaseMapRecord>(*record);
    bool goes_on = std::exchange(is_open_, map.more);
    if (!map.more) commits_.insert(frame.sequence + 1);
    if (goes_on)
      std::ranges::move(map.changes, std::back_inserter(maps_.back().changes));
    else
      maps_.push_back(std::move(map));
    maps_.back().more = is_open_;
    return {};
  }

  Status take_mark(const Frame& frame, bool is_next) {
    Record record = TRY(decode(frame.type, frame.payload));
    if (std::get<MarkRecord>(record).mark.kind != MarkKind::kCommit) return {};
    if (!is_next || is_open_) return lost(frame.sequence);
    commits_.insert(frame.sequence);
    return {};
  }

  Status take_marks(const Frame& frame) {
    Record record = TRY(decode(frame.type, frame.payload));
    const auto* from = std::get_if<FromRecord>(&record);
    told_.clear();
    for (const Mark& mark : from != nullptr
                                ? from->table.marks
                                : std::get<TableRecord>(record).marks)
      if (mark.kind == MarkKind::kCommit && mark.position > after_)
        told_.insert(mark.position);
    return {};
  }

  const Position after_;
  Position seen_ = 0;
  bool is_newest_ = false;
  bool is_open_ = false;  // the last map has more records
  bool is_torn_ = false;  // of the map being read something is lost
  std::vector<BaseMapRecord> maps_;
  std::set<Position> commits_;  // that were found
  std::set<Position> told_;     // that the newest generation knows of
};

}  // namespace

Status go_on(const JournalHead& head, const Logged& logged, State& state) {
  const auto* from = std::get_if<FromRecord>(&logged.record);
  if (from == nullptr || !head.is_from(logged.position))
    return state.apply(logged);
  state.go_on_from(*from, logged.position);
  return {};
}

Result<Replayed> replay(int draft_dir, Position until) {
  Generations all = TRY(Generations::list(draft_dir));
  return replay(all, until, Seals::kAll);
}

Result<Replayed> replay(Generations& all, Position until, Seals seals) {
  Replayed result;
  std::vector<Generation> sources = TRY(find_sources(all, until, result));
  Replay work(all.draft_dir(), result);
  for (auto source = sources.rbegin(); source != sources.rend(); ++source)
    TRY(work.read(*source));
  if ((sources.size() > 1 || until != kEnd) && seals == Seals::kAll)
    TRY(add_later_seals(all, sources.back(), work.read_to(), result.state));
  work.finish();
  if (until == kEnd && (work.lost_beginning() || work.lost_table()))
    TRY(show_older(all, !work.lost_beginning(), result));
  if (until != kEnd) return result;
  if (std::string trouble = all.trouble(); !trouble.empty()) {
    result.damaged = true;
    result.notes.insert(result.notes.begin(), std::move(trouble));
    result.head.open = all.newest_open();
  }
  return result;
}

Result<std::vector<BaseMapRecord>> base_maps_since(int draft_dir, Position at,
                                                   const Replayed* replayed) {
  BaseMaps maps(at);
  Generations generations = TRY(Generations::list(draft_dir));
  const Generation newest = TRY(generations.find(kEnd));
  for (const Generation& each : TRY(generations.readable(at))) {
    Fd fd =
        TRY_CTX(open_generation(draft_dir, each.number, O_RDONLY), "journal");
    uint64_t offset = each.head.size;
    Position seen = each.head.first;
    // Its table knows of no later commit.
    if (replayed != nullptr && replayed->generation == each.number &&
        replayed->end.sequence == at) {
      offset = replayed->end.end;
      seen = at;
    }
    maps.begin(seen, each.number == newest.number);
    TRY(scan_frames(
        fd.get(), offset, seen, each.head.open.draft,
        [&](const Frame& frame) -> Result<bool> {
          TRY(maps.take(frame));
          return true;
        },
        each.last));
    TRY(maps.end());
  }
  return maps.finish();
}

}  // namespace stoplog::fs
