// SPDX-License-Identifier: Apache-2.0
// The journal as a whole: every generation from first to last, record by
// record with the state beside it, and what of the segments its marks need.
// Nothing on disk changes. Memory is that of one state, however long the
// history.
//
//   RangeSet needed;
//   TRY(add_needed(draft_dir, {.keep = [](const Mark&) { return true; }},
//                  needed));
#pragma once

#include <functional>
#include <set>

#include "fs/ranges.h"
#include "fs/replay.h"

namespace stoplog::fs {

struct HistoryVisitor {
  // Before and after a record was applied; either may be empty.
  std::function<Status(const State&, const Logged&)> before{};
  std::function<Status(const State&, const Logged&)> after{};
  // The last record of a generation was applied.
  std::function<Status(const State&)> end{};
};
struct HistoryOptions {
  Position until = kEnd;
  // Generations to be walked; empty: all.
  std::function<bool(uint32_t)> generation{};
};
// Code::kCorrupt when a generation is damaged.
Status walk_history(int draft_dir, const HistoryOptions& options,
                    const HistoryVisitor& visitor);

// Everything that `state` refers to.
void add_needed(const State& state, RangeSet& needed);

// A sealed range is checked as a whole: what is needed of it keeps all of it.
void keep_seals_whole(const State::SealTable& seals, RangeSet& needed);

// What marks refer to, found while a history is walked.
class NeededRanges {
 public:
  // Which marks count; empty: all. The end of the last generation always does.
  // `also`: positions that do, marks or not.
  explicit NeededRanges(std::function<bool(const Mark&)> keep = {},
                        std::set<Position> also = {});
  ~NeededRanges();
  NeededRanges(const NeededRanges&) = delete;
  NeededRanges& operator=(const NeededRanges&) = delete;
  void after(const State& state, const Logged& logged);
  void end(const State& state);
  RangeSet take();  // at the end; seals whole

 private:
  struct Changed;
  std::function<bool(const Mark&)> keep_;
  std::set<Position> also_;
  std::unique_ptr<Changed> changed_;
  RangeSet needed_, last_;
  State::SealTable seals_;
};

struct NeededOptions {
  Position until = kEnd;
  // Which marks count; the end of the last generation always does.
  std::function<bool(const Mark&)> keep{};
  std::function<bool(uint32_t)> generation{};
  std::set<Position> also{};  // positions that count as well, marks or not
};
// Everything that those marks refer to, seals whole. Cost is that of a replay
// and of what changed between the marks, not of marks times nodes.
Status add_needed(int draft_dir, const NeededOptions& options,
                  RangeSet& needed);

}  // namespace stoplog::fs
