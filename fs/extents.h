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

namespace stoplog::fs {

enum class Where : uint8_t { kHole = 0, kLower = 1, kSegment = 2, kZero = 3 };

struct Extent {
  uint64_t offset = 0;  // in the file
  uint64_t length = 0;
  Where where = Where::kHole;
  uint32_t segment = 0;
  uint64_t at = 0;     // in the segment; for lower ranges equal to offset
  uint32_t epoch = 0;  // when it was written; 0: never to be overwritten
  uint64_t end() const { return offset + length; }
  bool operator==(const Extent&) const = default;
};

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
  bool has_lower() const;
  uint64_t segment_bytes() const;  // bytes of kSegment ranges
  uint64_t allocated() const;      // bytes that are not holes
  const std::vector<Extent>& all() const { return list_; }
  void clear(const DeadSink& dead = {});

 private:
  // Index of the first extent that ends after `offset`.
  size_t first_after(uint64_t offset) const;
  void cut(uint64_t begin, uint64_t end, const DeadSink& dead);
  void insert(const Extent& extent);
  std::vector<Extent> list_;  // sorted, disjoint, no kHole
  uint64_t size_ = 0;
};

}  // namespace stoplog::fs
