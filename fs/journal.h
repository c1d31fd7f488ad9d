// SPDX-License-Identifier: Apache-2.0
// Journal: one generation file, open for appending. Reading is
// fs/generations.h; what the records mean is fs/state's business.
//
//   auto journal = TRY(Journal::create(dir, open_record, position, older));
//   ... append the state, or what it goes on from ...
//   TRY(journal->publish());          // fsync, rename into place, fsync
//   (of a new draft: TRY(journal->begin());  // sync() does the rest)
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
#include "fs/generations.h"

namespace stoplog::fs {

enum class Room : uint8_t { kOrdinary, kSpare };

class Journal {
 public:
  // Continues a generation at `end`, cutting what is behind it.
  static Result<std::unique_ptr<Journal>> resume(int draft_dir,
                                                 const JournalHead& head,
                                                 const ScanEnd& end);
  // Starts a generation file under its temporary name; `older` are those
  // before it.
  static Result<std::unique_ptr<Journal>> create(int draft_dir,
                                                 const OpenRecord& open,
                                                 Position after,
                                                 const OlderRecord& older = {});
  ~Journal();

  // Makes a created generation the current one.
  Status publish();
  // The same for a draft's first one, which holds nothing that could be lost:
  // it has its name at once, and is on the disk, its name and the link `newest`
  // with it, after the first sync(). Readers take a first generation without
  // that link, in which there is nothing, for one that was never begun.
  Status begin();
  // False: sync() was not called since begin().
  bool is_kept() const { return !is_young_; }
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
  void tell_newest();

  OpenRecord open_;
  Position first_ = 0;        // of a created one
  OlderRecord::Part before_;  // the same
  Fd dir_, fd_;
  bool published_ = true;
  std::atomic<bool> is_young_ = false;  // begun, not yet kept
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
