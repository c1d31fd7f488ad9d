// SPDX-License-Identifier: Apache-2.0
// Generations: the files of one journal as a reader finds them, newest first
// and no further back than it must.
//
//   Generations all = TRY(Generations::list(draft_dir));
//   Generation last = TRY(all.find(kEnd));
//   TRY(journal_scan(fd, last.head, last.last, sink));
//
// Where a generation begins and ends is never guessed. Its own open record
// says the one, and the older record of a newer generation says both; the link
// `newest` says it of the newest. So one damaged record, a file that is missing
// or another one in its place is found, and most of it can be read all the
// same. Journals of before these records are read by their open records alone;
// a position is then refused when it may lie in a generation that lost its own.
//
// Nothing is written but the link. One thread at a time.
#pragma once

#include <functional>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "base/fd.h"
#include "fs/frames.h"
#include "fs/records.h"

namespace stoplog::fs {

inline constexpr Position kEnd = UINT64_MAX;

struct JournalHead {
  OpenRecord open;
  Position first = 0;  // sequence of the open record
  uint64_t size = 0;   // bytes of it
  // What the generation goes on from; absent: it holds a whole state. Of the
  // record's table, which has all marks, nothing is kept here.
  struct Before {
    Position record = 0;  // where that is written
    Position position = 0;
    uint32_t depth = 1;
  };
  std::optional<Before> from{};

  bool is_from(Position position) const {
    return from && position == from->record;
  }
};
// Of generations that go on from one another; a longer chain is no journal.
inline constexpr uint32_t kMostDepth = 64;

// The generations that are complete, in order.
Result<std::vector<uint32_t>> list_generations(int draft_dir);
Result<Fd> open_generation(int draft_dir, uint32_t generation, int flags);
Result<JournalHead> read_head(int fd);

// What the link `newest` says: the newest generation, and where the one before
// it ends, as far as that is kept.
struct Newest {
  OlderRecord::Part part;  // its `last` counts for nothing
  uint32_t before = 0;     // 0: none, or not known
  Position before_last = 0;
};
// `dir` is the journal's.
Status set_newest(int dir, const Newest& newest);
std::optional<Newest> read_newest(int dir);

// The file may go on behind `last`: a fork shares it with a draft that has gone
// its own way since.
struct Generation {
  uint32_t number = 0;
  JournalHead head;
  Position last = kEnd;
  // A record says that `last` is there: a file that ends before it was cut.
  bool reaches_last = false;
  // The open record is damaged; `head` is what others say of it.
  bool lost_open = false;
  // The number of a newer one whose beginning is not known, and so the end of
  // this one is not; 0: none.
  uint32_t ends_before = 0;
};

// One that is dropped while it is read was not needed.
class Generations {
 public:
  static Result<Generations> list(int draft_dir);
  int draft_dir() const { return draft_dir_; }
  // The one that holds `at`, the newest for kEnd. Code::kInvalid when none has
  // it any more, Code::kCorrupt when the one that had it is damaged.
  Result<Generation> find(Position at);
  // All of them, oldest first; Code::kCorrupt when one is damaged.
  Result<std::vector<Generation>> all();
  // Those that hold something behind `at`, oldest first, without the ones that
  // are damaged or whose end is not known.
  Result<std::vector<Generation>> readable(Position at);
  // What is wrong with the newest, for people; empty: nothing.
  std::string trouble() const;
  // What the next generation says of these, when they end at `end`; of a
  // missing one when it is needed.
  Result<OlderRecord> older(Position end, const std::set<uint32_t>& needed);
  // Code::kCorrupt when one of these should be there and is not.
  Status check_present(const std::set<uint32_t>& needed) const;
  // What the next generation's open record goes on from.
  OpenRecord newest_open() const;
  // Behind which position the next begins when these are damaged and end at
  // `end`, as far as is known: what lost records were numbered is never used
  // again, for commits and reviews elsewhere may speak of it.
  Position behind_lost(Position end) const;
  // Writes the link `newest` anew where it does not say what is there.
  Status tell_newest();

 private:
  using Part = OlderRecord::Part;
  Result<bool> read_first();
  Status read_or_note();
  Status read_next();
  Result<Position> end_of(const Generation& each) const;
  void add(Generation generation, std::optional<OlderRecord> older);
  const Part* part_of(uint32_t number) const;
  bool has(uint32_t number) const;
  std::unexpected<Error> absent(Position at) const;

  int draft_dir_ = -1;
  std::vector<uint32_t> numbers_;  // oldest first
  size_t unread_ = 0;              // of them, from the front
  std::vector<Generation> known_;  // newest first
  std::optional<Newest> newest_;   // as the link says
  bool is_missing_ = false;        // that one, or another is in its place
  std::vector<Part> parts_;        // as the newest older record says
  uint32_t parts_of_ = 0;          // whose that is; 0: none
  uint32_t lost_ = 0;              // lost its beginning, not yet passed
  Status damage_;
};

// Calls `sink` for each record up to and including `until`. Records that do
// not decode count as damage and are passed over.
struct Logged {
  Position position = 0;
  uint32_t command = 0;
  Record record;
};
using RecordSink = std::function<Status(const Logged&)>;
Result<ScanEnd> journal_scan(int fd, const JournalHead& head, Position until,
                             const RecordSink& sink);
// Code::kCorrupt when a scan of `each` up to `until` found damage, or ended
// before its last record.
Status check_whole(const Generation& each, const ScanEnd& end, Position until);

}  // namespace stoplog::fs
