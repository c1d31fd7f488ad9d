// SPDX-License-Identifier: Apache-2.0
#include "fs/ranges.h"

#include <algorithm>

namespace stoplog::fs {

void RangeSet::add(const SegmentRange& range) {
  if (range.segment == 0 || range.length == 0) return;
  Ranges& ranges = segments_[range.segment];
  uint64_t begin = range.at, end = range.at + range.length;
  auto it = ranges.upper_bound(begin);
  if (it != ranges.begin()) {
    auto before = std::prev(it);
    if (before->second >= begin) {
      if (before->second >= end) return;
      begin = before->first;
      it = ranges.erase(before);
    }
  }
  while (it != ranges.end() && it->first <= end) {
    end = std::max(end, it->second);
    it = ranges.erase(it);
  }
  ranges.emplace_hint(it, begin, end);
}

void RangeSet::merge(const RangeSet& other) {
  for (const auto& [segment, ranges] : other.segments_)
    for (const auto& [begin, end] : ranges)
      add({.segment = segment, .at = begin, .length = end - begin});
}

bool RangeSet::covers(const SegmentRange& range) const {
  if (range.segment == 0 || range.length == 0) return true;
  auto found = segments_.find(range.segment);
  if (found == segments_.end()) return false;
  auto it = found->second.upper_bound(range.at);
  return it != found->second.begin() &&
         std::prev(it)->second >= range.at + range.length;
}

std::vector<uint32_t> RangeSet::segments() const {
  std::vector<uint32_t> numbers;
  for (const auto& [segment, ranges] : segments_) numbers.push_back(segment);
  return numbers;
}

std::vector<SegmentRange> RangeSet::in(uint32_t segment) const {
  std::vector<SegmentRange> list;
  auto found = segments_.find(segment);
  if (found == segments_.end()) return list;
  for (const auto& [begin, end] : found->second)
    list.push_back({.segment = segment, .at = begin, .length = end - begin});
  return list;
}

std::vector<SegmentRange> RangeSet::gaps(uint32_t segment,
                                         uint64_t size) const {
  std::vector<SegmentRange> list;
  uint64_t at = 0;
  for (const SegmentRange& range : in(segment)) {
    if (range.at > at && at < size)
      list.push_back({.segment = segment,
                      .at = at,
                      .length = std::min(range.at, size) - at});
    at = std::max(at, range.at + range.length);
  }
  if (at < size)
    list.push_back({.segment = segment, .at = at, .length = size - at});
  return list;
}

uint64_t RangeSet::bytes() const {
  uint64_t sum = 0;
  for (const auto& [segment, ranges] : segments_)
    for (const auto& [begin, end] : ranges) sum += end - begin;
  return sum;
}

}  // namespace stoplog::fs
