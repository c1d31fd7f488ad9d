// SPDX-License-Identifier: Apache-2.0
#include "fs/extents.h"

#include <algorithm>

namespace stoplog::fs {
namespace {

// [begin, end) of `extent`, which must lie inside.
Extent slice(const Extent& extent, uint64_t begin, uint64_t end) {
  Extent part = extent;
  part.offset = begin;
  part.length = end - begin;
  if (extent.where != Where::kZero)
    part.at = extent.at + (begin - extent.offset);
  return part;
}

// True when `b` continues `a` in the file and where the bytes are.
bool joins(const Extent& a, const Extent& b) {
  if (a.end() != b.offset || a.where != b.where) return false;
  if (a.where == Where::kZero) return true;
  return a.segment == b.segment && a.at + a.length == b.at &&
         a.epoch == b.epoch;
}

}  // namespace

size_t ExtentMap::first_after(uint64_t offset) const {
  // Appending is the common case: look at the end first.
  if (list_.empty() || list_.back().end() <= offset) return list_.size();
  auto it =
      std::partition_point(list_.begin(), list_.end(),
                           [&](const Extent& e) { return e.end() <= offset; });
  return static_cast<size_t>(it - list_.begin());
}

void ExtentMap::cut(uint64_t begin, uint64_t end, const DeadSink& dead) {
  if (begin >= end) return;
  size_t first = first_after(begin);
  if (first == list_.size() || list_[first].offset >= end) return;
  size_t last = first;
  std::vector<Extent> keep;
  for (; last < list_.size() && list_[last].offset < end; ++last) {
    const Extent& old = list_[last];
    uint64_t from = std::max(old.offset, begin);
    uint64_t to = std::min(old.end(), end);
    if (old.offset < from) keep.push_back(slice(old, old.offset, from));
    if (to < old.end()) keep.push_back(slice(old, to, old.end()));
    if (dead && old.where == Where::kSegment) dead(slice(old, from, to));
  }
  auto at = list_.erase(list_.begin() + static_cast<long>(first),
                        list_.begin() + static_cast<long>(last));
  list_.insert(at, keep.begin(), keep.end());
}

void ExtentMap::insert(const Extent& extent) {
  size_t at = first_after(extent.offset);
  if (at > 0 && joins(list_[at - 1], extent)) {
    list_[at - 1].length += extent.length;
    --at;
  } else {
    list_.insert(list_.begin() + static_cast<long>(at), extent);
  }
  if (at + 1 < list_.size() && joins(list_[at], list_[at + 1])) {
    list_[at].length += list_[at + 1].length;
    list_.erase(list_.begin() + static_cast<long>(at) + 1);
  }
}

void ExtentMap::truncate(uint64_t size, const DeadSink& dead) {
  if (size < size_) cut(size, size_, dead);
  size_ = size;
}

void ExtentMap::put(const Extent& extent, const DeadSink& dead) {
  if (extent.length == 0) return;
  cut(extent.offset, extent.end(), dead);
  if (extent.where != Where::kHole) insert(extent);
  size_ = std::max(size_, extent.end());
}

void ExtentMap::punch(uint64_t offset, uint64_t length, const DeadSink& dead) {
  if (offset >= size_) return;
  uint64_t end = length > size_ - offset ? size_ : offset + length;
  cut(offset, end, dead);
}

std::vector<Extent> ExtentMap::find(uint64_t offset, uint64_t length) const {
  std::vector<Extent> pieces;
  if (offset >= size_) return pieces;
  uint64_t end = length > size_ - offset ? size_ : offset + length;
  uint64_t at = offset;
  auto hole = [&](uint64_t to) {
    if (to > at) pieces.push_back({.offset = at, .length = to - at});
  };
  for (size_t i = first_after(offset); i < list_.size(); ++i) {
    const Extent& e = list_[i];
    if (e.offset >= end) break;
    uint64_t from = std::max(e.offset, at);
    hole(from);
    pieces.push_back(slice(e, from, std::min(e.end(), end)));
    at = std::min(e.end(), end);
  }
  hole(end);
  return pieces;
}

uint64_t ExtentMap::next_data(uint64_t offset) const {
  size_t i = first_after(offset);
  if (i == list_.size()) return size_;
  return std::max(list_[i].offset, offset);
}

const Extent* ExtentMap::covering(uint64_t offset) const {
  size_t i = first_after(offset);
  if (i == list_.size() || list_[i].offset > offset) return nullptr;
  return &list_[i];
}

void ExtentMap::pin(uint32_t segment, uint64_t at) {
  std::vector<Extent> old;
  old.swap(list_);
  for (Extent& e : old) {
    if (e.where == Where::kLower) {
      e.where = Where::kSegment;
      e.segment = segment;
      e.at = at + e.offset;
      e.epoch = 0;
    }
    if (!list_.empty() && joins(list_.back(), e))
      list_.back().length += e.length;
    else
      list_.push_back(e);
  }
}

bool ExtentMap::has_lower() const {
  return std::ranges::any_of(
      list_, [](const Extent& e) { return e.where == Where::kLower; });
}

uint64_t ExtentMap::segment_bytes() const {
  uint64_t sum = 0;
  for (const Extent& e : list_)
    if (e.where == Where::kSegment) sum += e.length;
  return sum;
}

uint64_t ExtentMap::allocated() const {
  uint64_t sum = 0;
  for (const Extent& e : list_) sum += e.length;
  return sum;
}

void ExtentMap::clear(const DeadSink& dead) {
  if (dead)
    for (const Extent& e : list_)
      if (e.where == Where::kSegment) dead(e);
  list_.clear();
  size_ = 0;
}

}  // namespace stoplog::fs
