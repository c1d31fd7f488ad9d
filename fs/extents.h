// SPDX-License-Identifier: Apache-2.0
// ExtentMap: where the bytes of one file are. An ordered set of ranges, each
// of the lower file (at the same offset), of a segment, or zeroes that are
// allocated (fallocate); what no range covers below the size is a hole. Pure
// data: no I/O, no locks.
//
//   map.put({.offset = 0, .length = 10, .where = Where::kSegment, ...});
//   map.truncate(5);
//   for (const Piece& p : map.find(0, 5)) ...
//
// put, punch and truncate report the segment ranges that lost their last user
// here, so that the caller can count and reclaim them.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "fs/extent_list.h"

namespace stoplog::fs {

// A range of a segment that this file no longer uses, and its epoch.
using DeadSink = std::function<void(const Extent&)>;

class ExtentMap {
 public:
  uint64_t size() const { return size_; }
  // Grows with a hole or cuts.
  void truncate(uint64_t size, const DeadSink& dead = {});
  // Lays `extent` over what is there; grows the size when it ends beyond.
  void put(const Extent& extent, const DeadSink& dead = {});
  // Makes a hole; the size stays.
  void punch(uint64_t offset, uint64_t length, const DeadSink& dead = {});
  // Every byte of [offset, offset+length) below the size, holes as kHole
  // pieces, in order.
  std::vector<Extent> find(uint64_t offset, uint64_t length) const;
  // The next data (not a hole; kZero counts as data, as ext4 counts unwritten
  // extents in the page cache) at or after `offset`; size() when none.
  uint64_t next_data(uint64_t offset) const;
  // The extent that holds `offset`; null in a hole and beyond the size.
  const Extent* covering(uint64_t offset) const;
  // Lower ranges now lie in `segment` at the same offset plus `at`.
  void pin(uint32_t segment, uint64_t at);
  bool has_lower() const { return list_.has_lower(); }
  // Bytes of kSegment ranges; bytes that are not holes.
  uint64_t segment_bytes() const { return list_.segment_bytes(); }
  uint64_t allocated() const { return list_.bytes(); }
  const ExtentList& all() const { return list_; }
  uint64_t take_parted() { return list_.take_parted(); }
  void clear(const DeadSink& dead = {});

 private:
  void lay(uint64_t begin, uint64_t end, const Extent* fresh,
           const DeadSink& dead);
  ExtentList list_;  // no kHole
  uint64_t size_ = 0;
};

}  // namespace stoplog::fs
