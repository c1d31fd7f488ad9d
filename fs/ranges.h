// SPDX-License-Identifier: Apache-2.0
// RangeSet: ranges of segments, merged. Pure data, for telling what is needed
// of the segments from what is not.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "fs/segments.h"

namespace stoplog::fs {

class RangeSet {
 public:
  // Ranges of length 0 and of segment 0 (none) are passed over.
  void add(const SegmentRange& range);
  void merge(const RangeSet& other);
  bool has(uint32_t segment) const { return segments_.contains(segment); }
  bool covers(const SegmentRange& range) const;
  std::vector<uint32_t> segments() const;  // ascending
  // What is in the set of one segment, and what is not below `size`.
  std::vector<SegmentRange> in(uint32_t segment) const;
  std::vector<SegmentRange> gaps(uint32_t segment, uint64_t size) const;
  uint64_t bytes() const;

 private:
  using Ranges = std::map<uint64_t, uint64_t>;  // begin -> end
  std::map<uint32_t, Ranges> segments_;
};

}  // namespace stoplog::fs
