// SPDX-License-Identifier: Apache-2.0
// Segments: the files that hold what the agent wrote. Append-only: a range is
// allocated once and written then; it is written again only while its extent
// is open (no mark has seen it) and the segment has one link. A segment with
// more links is shared with a fork and never changes.
//
//   SegmentRange r = TRY(segments->allocate(n));
//   TRY(segments->write(r, bytes));
//
// Any thread; locks inside are leaves. Errors are those of the disk.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <set>
#include <span>
#include <unordered_map>
#include <vector>

#include "base/fd.h"
#include "base/result.h"
#include "fs/fd_cache.h"

namespace stoplog::fs {

struct SegmentRange {
  uint32_t segment = 0;
  uint64_t at = 0;
  uint64_t length = 0;
};

class Segments {
 public:
  // Reading only: a missing directory holds nothing.
  static Result<std::unique_ptr<Segments>> open(int draft_dir, bool writable);

  // Says that a range was allocated whose record is not yet written: as long
  // as it lives nobody else gives the range back. It does so itself at its end
  // unless recorded() was called: no record came, the disk may be full.
  class Claim {
   public:
    Claim() = default;
    Claim(const Claim&) = delete;
    Claim& operator=(const Claim&) = delete;
    ~Claim() {
      if (segments_ != nullptr) segments_->release(range_, recorded_);
    }
    void recorded() { recorded_ = true; }

   private:
    friend class Segments;
    Segments* segments_ = nullptr;
    SegmentRange range_;
    bool recorded_ = false;
  };
  std::vector<SegmentRange> claimed();
  uint64_t allocated() const { return allocated_; }  // bytes so far

  // A fresh range. When `behind` ends where the active segment ends now, the
  // range continues it, so that a file written in order stays one extent.
  Result<SegmentRange> allocate(uint64_t length,
                                const SegmentRange& behind = {},
                                Claim* claim = nullptr);
  Status write(const SegmentRange& range, std::span<const std::byte> data);
  // The same; when `sparse`, pages of zeros are left out. The last is not: the
  // next daemon goes on behind the end of the file.
  Status write_thin(const SegmentRange& range, std::span<const std::byte> data,
                    bool sparse);
  Result<size_t> read(uint32_t segment, uint64_t at, std::span<std::byte> out);
  Result<FdHandle> handle(uint32_t segment);
  // Where data begins in [at, end), and where it ends; `end` when there is
  // none, or none but data. What cannot be asked is data.
  uint64_t next_data(uint32_t segment, uint64_t at, uint64_t end);
  uint64_t next_hole(uint32_t segment, uint64_t at, uint64_t end);
  // A segment of its own for one large file of `length` bytes, to be filled
  // through its fd and then noted as written.
  struct Whole {
    uint32_t segment;
    FdHandle fd;
  };
  Result<Whole> create_whole(uint64_t length, Claim& claim);
  void note_written(uint32_t segment);

  // May bytes that are there be written again or given back to the disk?
  bool is_mutable(uint32_t segment);
  // Where what was left free behind `end`, to align what came next, is over;
  // `end` itself when nothing was, as far as is known.
  uint64_t end_of_gap(uint32_t segment, uint64_t end);
  // The whole pages of a range.
  Status punch(const SegmentRange& range);
  Status remove(uint32_t segment);
  // Everything written so far, also by a call that is under way: an error that
  // it meets is told to all who wait for it, for the kernel tells it once.
  Status sync();
  // No further allocation in the segments that exist; the last of their
  // numbers. Who allocated in one before has a claim to it, or a record.
  uint32_t seal_all();
  // Hard-links every segment into `to_dir`; they are immutable from then on.
  Status link_into(int to_draft_dir);
  Result<std::vector<uint32_t>> list() const;
  Result<uint64_t> disk_bytes();
  size_t open_fds() const { return fds_.size(); }
  // What is on record of the segments: numbers below `next`, and of the last of
  // them the bytes up to `end`. Where those are there, allocation goes on
  // behind them, so that a draft with many short daemons has few files. Where
  // they are not, the machine stopped before they were on the disk: what came
  // there now would show in files that are on record.
  Status go_on(uint32_t next, uint64_t end);
  // Where the file system stands that holds the segments.
  int dir() const { return dir_.get(); }

 private:
  explicit Segments(bool writable) : writable_(writable) {}
  Status start_new_locked();
  Status sync_round();
  void release(const SegmentRange& range, bool recorded);

  static constexpr uint64_t kRoll = 64u << 20;  // start another beyond this

  const bool writable_;
  Fd dir_;
  FdCache fds_{64};
  std::mutex sync_mutex_;  // one round of sync() at a time; before mutex_
  std::mutex mutex_;
  // By mutex_:
  uint32_t active_ = 0;  // 0: none yet
  uint64_t active_end_ = 0;
  std::atomic<uint32_t> next_ = 1;
  std::vector<SegmentRange> claims_;
  // Of what was allocated since the start: gaps, in order, each as where it
  // begins and, in the low 16 bits, how long it is.
  std::unordered_map<uint32_t, std::vector<uint64_t>> gaps_;
  std::atomic<uint64_t> allocated_ = 0;
  std::set<uint32_t> dirty_;
  uint64_t failed_rounds_ = 0;  // of sync()
  std::set<uint32_t> removed_;  // numbers are never used again
  std::unordered_map<uint32_t, bool> mutable_;
};

}  // namespace stoplog::fs
