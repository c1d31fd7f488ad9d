// SPDX-License-Identifier: Apache-2.0
// Journal: one generation file, open for appending. Reading is journal_scan();
// what the records mean is fs/state's business.
//
//   auto journal = TRY(Journal::create(dir, open_record, position));
//   ... append the state ...
//   TRY(journal->publish());          // fsync, rename into place, fsync
//   Position p = TRY(journal->append(records, command));
//   TRY(journal->sync());
//
// append() is one pwrite into preallocated space; when it fails the file is
// cut back and nothing has happened. A spare of that space is left for records
// with which room is made (Room::kSpare), so that they fit on a full disk too.
// When even that fails, or an fsync does, the journal is broken: every later
// call fails, because what the disk holds is no longer known. append() is
// called by one thread at a time (the tree's lock); sync() by any, and callers
// share one fdatasync (group commit).
#pragma once

#include <atomic>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <string>

#include "base/fd.h"
#include "fs/frames.h"
#include "fs/records.h"

namespace stoplog::fs {

struct JournalHead {
  OpenRecord open;
  Position first = 0;  // sequence of the open record
  uint64_t size = 0;   // bytes of it
  // What the generation goes on from; absent: it holds a whole state. Of the
  // record's table, which has all marks, nothing is kept here.
  struct Before {
    Position position = 0;
    uint32_t depth = 1;
  };
  std::optional<Before> from{};

  bool is_from(Position position) const {
    return from && position == first + 1;
  }
};
// Of generations that go on from one another; a longer chain is no journal.
inline constexpr uint32_t kMostDepth = 64;

// The generations that are complete, in order.
Result<std::vector<uint32_t>> list_generations(int draft_dir);
Result<Fd> open_generation(int draft_dir, uint32_t generation, int flags);
Result<JournalHead> read_head(int fd);

// The file may go on behind `last`: a fork shares it with a draft that has gone
// its own way since.
struct Generation {
  uint32_t number = 0;
  JournalHead head;
  Position last = UINT64_MAX;
};
// The generations of a draft, read from the newest on and no further than
// needed; one that is dropped meanwhile was not needed.
class Generations {
 public:
  static Result<Generations> list(int draft_dir);
  int draft_dir() const { return draft_dir_; }
  // The one that holds `at`, the newest for kEnd; Code::kInvalid when there is
  // none. One whose head is damaged is passed over: who reads up to `at` will
  // find that the end comes too early.
  Result<Generation> find(Position at);
  // All of them, oldest first; Code::kCorrupt when one is damaged.
  Result<std::vector<Generation>> all();

 private:
  Status read_next();

  int draft_dir_ = -1;
  std::vector<uint32_t> unread_;   // oldest first
  std::vector<Generation> known_;  // newest first
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

enum class Room : uint8_t { kOrdinary, kSpare };

class Journal {
 public:
  // Continues a generation at `end`, cutting what is behind it.
  static Result<std::unique_ptr<Journal>> resume(int draft_dir,
                                                 const JournalHead& head,
                                                 const ScanEnd& end);
  // Starts a generation file under its temporary name.
  static Result<std::unique_ptr<Journal>> create(int draft_dir,
                                                 const OpenRecord& open,
                                                 Position after);
  ~Journal();

  // Makes a created generation the current one.
  Status publish();
  Result<Position> append(std::span<const Record> records, uint32_t command,
                          Room room = Room::kOrdinary);
  Status sync();
  Position position() const { return position_; }
  Position synced() const { return synced_; }
  uint64_t bytes() const { return end_; }
  uint32_t generation() const { return open_.generation; }
  const OpenRecord& open_record() const { return open_; }

 private:
  Journal() = default;
  Status reserve(uint64_t size, Room room);

  OpenRecord open_;
  Fd dir_, fd_;
  bool published_ = true;
  std::string buffer_;
  uint64_t end_ = 0;
  uint64_t reserved_ = 0;
  std::atomic<Position> position_ = 0;
  std::atomic<bool> broken_ = false;
  std::mutex sync_mutex_;
  std::condition_variable sync_done_;
  bool syncing_ = false;  // by sync_mutex_
  std::atomic<Position> synced_ = 0;
};

}  // namespace stoplog::fs
