// SPDX-License-Identifier: Apache-2.0
#include "fs/replay.h"

#include <algorithm>
#include <iterator>

#include <fmt/format.h>

#include <map>

namespace stoplog::fs {
namespace {

constexpr size_t kMostNotes = 20;  // a ruined journal must not flood a terminal

// What must be read for the state at `until`: from the newest generation back
// to one that holds a whole state.
Result<std::vector<Generation>> find_sources(Generations& all, Position until) {
  std::vector<Generation> sources;
  for (Position at = until;;) {
    if (sources.size() == kMostDepth)
      return fail(Code::kCorrupt, "the journal goes on from too much");
    sources.push_back(TRY(all.find(at)));
    sources.back().last = at;
    if (!sources.back().head.from) return sources;
    at = sources.back().head.from->position;
  }
}

void note(std::vector<std::string>& notes, std::string text) {
  if (notes.size() < kMostNotes) notes.push_back(std::move(text));
}

class Replay {
 public:
  Replay(int draft_dir, Replayed& result)
      : draft_dir_(draft_dir), result_(result) {}

  Status read(const Generation& source) {
    Position until = source.last;
    begun_ = source.head.first == 1;
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

  // The last that was read holds neither a whole state nor what it goes on
  // from.
  bool lost_beginning() const { return !begun_; }

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
    auto applied = go_on(source.head, logged, result_.state);
    if (!applied) refused_.emplace(logged.position, applied.error().text());
    // What the live tree refused as well did not happen.
    if (const auto* known = std::get_if<RefusedRecord>(&logged.record))
      for (Position position : known->positions) refused_.erase(position);
  }

  const int draft_dir_;
  Replayed& result_;
  bool begun_ = false;
  std::map<Position, std::string> refused_;
};

// Seals speak of bytes, not of moments: those that were made after what a
// generation goes on from hold all the same.
Status add_later_seals(Generations& all, const Generation& first,
                       Position until, State& state) {
  const uint16_t wanted = record_type(SealRecord{});
  for (Position at = until; at >= first.head.first;) {
    Generation each = TRY(all.find(at));
    Fd fd = TRY_CTX(open_generation(all.draft_dir(), each.number, O_RDONLY),
                    "journal");
    TRY(scan_frames(
        fd.get(), each.head.size, each.head.first, each.head.open.draft,
        [&](const Frame& frame) -> Result<bool> {
          if (frame.type != wanted) return true;
          if (auto seal = decode(frame.type, frame.payload))
            state.add_seal(std::get<SealRecord>(*seal));
          return true;
        },
        std::min(each.last, until)));
    at = each.head.first - 1;
  }
  return {};
}

// Of a newest generation without a beginning nothing can be said; the end of
// the one before it has the marks that lead out of there.
Status show_older(Generations& all, Replayed& result) {
  auto older = replay(all, result.head.first - 1, Seals::kAll);
  if (!older) return {};  // nothing to show, and that was said
  result.state = std::move(older->state);
  for (std::string& text : older->notes) note(result.notes, std::move(text));
  return {};
}

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
  std::vector<Generation> sources = TRY(find_sources(all, until));
  Replayed result;
  Replay work(all.draft_dir(), result);
  for (auto source = sources.rbegin(); source != sources.rend(); ++source)
    TRY(work.read(*source));
  if (sources.size() > 1 && seals == Seals::kAll)
    TRY(add_later_seals(all, sources.back(), until, result.state));
  work.finish();
  if (work.lost_beginning() && until == kEnd) TRY(show_older(all, result));
  return result;
}

Result<std::vector<BaseMapRecord>> base_maps_since(int draft_dir, Position at) {
  std::vector<BaseMapRecord> maps;
  // The records of one commit are one map.
  auto add = [&](BaseMapRecord record) {
    if (maps.empty() || !maps.back().more) {
      maps.push_back(std::move(record));
      return;
    }
    maps.back().more = record.more;
    std::ranges::move(record.changes, std::back_inserter(maps.back().changes));
  };
  const uint16_t wanted = record_type(BaseMapRecord{});
  Generations generations = TRY(Generations::list(draft_dir));
  for (const Generation& each : TRY(generations.all())) {
    if (each.last <= at) continue;
    Fd fd =
        TRY_CTX(open_generation(draft_dir, each.number, O_RDONLY), "journal");
    TRY(scan_frames(
        fd.get(), each.head.size, each.head.first, each.head.open.draft,
        [&](const Frame& frame) -> Result<bool> {
          if (frame.sequence <= at || frame.type != wanted) return true;
          auto record = decode(frame.type, frame.payload);
          if (record) add(std::get<BaseMapRecord>(std::move(*record)));
          return true;
        },
        each.last));
  }
  if (!maps.empty() && maps.back().more) maps.pop_back();
  return maps;
}

}  // namespace stoplog::fs
