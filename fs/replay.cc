// SPDX-License-Identifier: Apache-2.0
#include "fs/replay.h"

#include <algorithm>
#include <iterator>

#include <fmt/format.h>

#include <map>

namespace stoplog::fs {
namespace {

constexpr size_t kMostNotes = 20;  // a ruined journal must not flood a terminal

struct Generation {
  Fd fd;
  JournalHead head;
};

// The generation that holds `until`: the last that starts at or before it.
Result<Generation> find_generation(int draft_dir, Position until) {
  std::vector<uint32_t> numbers = TRY(list_generations(draft_dir));
  if (numbers.empty()) return fail_errno(ENOENT, "the draft has no journal");
  for (auto it = numbers.rbegin(); it != numbers.rend(); ++it) {
    Generation source;
    source.fd = TRY_CTX(open_generation(draft_dir, *it, O_RDONLY), "journal");
    source.head = TRY(read_head(source.fd.get()));
    if (source.head.first <= until) return source;
  }
  return fail(Code::kInvalid, "position {} is no longer in the journal", until);
}

void note(std::vector<std::string>& notes, std::string text) {
  if (notes.size() < kMostNotes) notes.push_back(std::move(text));
}

}  // namespace

Result<Replayed> replay(int draft_dir, Position until) {
  Generation source = TRY(find_generation(draft_dir, until));
  Replayed result;
  result.head = source.head;
  result.generation = source.head.open.generation;
  result.state.set_generation(result.generation);
  std::map<Position, std::string> refused;
  result.end = TRY(journal_scan(
      source.fd.get(), source.head, until, [&](const Logged& logged) -> Status {
        ++result.records;
        auto applied = result.state.apply(logged);
        if (!applied) refused.emplace(logged.position, applied.error().text());
        // What the live tree refused as well did not happen.
        if (const auto* known = std::get_if<RefusedRecord>(&logged.record))
          for (Position position : known->positions) refused.erase(position);
        return {};
      }));
  // After a gap, records can refer to what was lost.
  for (const auto& [position, why] : refused) {
    result.damaged = true;
    note(result.notes,
         fmt::format("record {} cannot be applied: {}", position, why));
  }
  for (const Damage& gap : result.end.damage) {
    if (gap.first_lost > until) continue;  // behind what is asked for
    result.damaged = true;
    note(result.notes,
         fmt::format("the journal is damaged: records {} to {} are lost",
                     gap.first_lost, gap.last_lost));
  }
  if (result.end.torn > 0 && !result.end.stopped)
    note(result.notes,
         fmt::format("{} bytes of an unfinished record at the end are cut",
                     result.end.torn));
  result.state.drop_orphans();
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
  for (uint32_t number : TRY(list_generations(draft_dir))) {
    Fd fd = TRY(open_generation(draft_dir, number, O_RDONLY));
    JournalHead head = TRY(read_head(fd.get()));
    TRY(scan_frames(fd.get(), head.size, head.first, head.open.draft,
                    [&](const Frame& frame) -> Result<bool> {
                      if (frame.sequence <= at || frame.type != wanted)
                        return true;
                      auto record = decode(frame.type, frame.payload);
                      if (record)
                        add(std::get<BaseMapRecord>(std::move(*record)));
                      return true;
                    }));
  }
  if (!maps.empty() && maps.back().more) maps.pop_back();
  return maps;
}

}  // namespace stoplog::fs
