// SPDX-License-Identifier: Apache-2.0
#include "fs/extents.h"

#include <algorithm>
#include <array>

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

// Takes away what lies in [begin, end) and puts `fresh` there, if any.
void ExtentMap::lay(uint64_t begin, uint64_t end, const Extent* fresh,
                    const DeadSink& dead) {
  if (begin >= end) return;
  using Place = ExtentList::Place;
  // At most a rest before, the new one, a rest behind.
  std::array<Extent, 3> with;
  size_t n = 0;
  auto add = [&](const Extent& e) {
    if (n > 0 && joins(with[n - 1], e))
      with[n - 1].length += e.length;
    else
      with[n++] = e;
  };
  Place first = list_.first_after(begin), last = first;
  if (fresh != nullptr && first != Place{}) {
    Place before = list_.previous(first);
    if (joins(list_[before], *fresh)) add(list_[first = before]);
  }
  const Place over = list_.end_place();
  Extent rest;
  for (; last != over && list_[last].offset < end; last = list_.next(last)) {
    const Extent& old = list_[last];
    uint64_t from = std::max(old.offset, begin);
    uint64_t to = std::min(old.end(), end);
    if (old.offset < from) add(slice(old, old.offset, from));
    if (to < old.end()) rest = slice(old, to, old.end());
    if (dead && old.where == Where::kSegment) dead(slice(old, from, to));
  }
  if (fresh != nullptr) add(*fresh);
  if (rest.length > 0) {
    add(rest);
  } else if (fresh != nullptr && last != over && joins(*fresh, list_[last])) {
    add(list_[last]);
    last = list_.next(last);
  }
  if (first == last && n == 0) return;
  list_.replace(first, last, std::span(with).first(n));
}

void ExtentMap::truncate(uint64_t size, const DeadSink& dead) {
  if (size < size_) lay(size, size_, nullptr, dead);
  size_ = size;
}

void ExtentMap::put(const Extent& extent, const DeadSink& dead) {
  if (extent.length == 0) return;
  const Extent* fresh = extent.where != Where::kHole ? &extent : nullptr;
  // Most writes append.
  if (fresh != nullptr &&
      (list_.empty() || list_.back().end() <= extent.offset)) {
    if (!list_.empty() && joins(list_.back(), extent))
      list_.lengthen_back(extent.length);
    else
      list_.push_back(extent);
  } else {
    lay(extent.offset, extent.end(), fresh, dead);
  }
  size_ = std::max(size_, extent.end());
}

void ExtentMap::punch(uint64_t offset, uint64_t length, const DeadSink& dead) {
  if (offset >= size_) return;
  uint64_t end = length > size_ - offset ? size_ : offset + length;
  lay(offset, end, nullptr, dead);
}

std::vector<Extent> ExtentMap::find(uint64_t offset, uint64_t length) const {
  std::vector<Extent> pieces;
  if (offset >= size_) return pieces;
  uint64_t end = length > size_ - offset ? size_ : offset + length;
  uint64_t at = offset;
  auto hole = [&](uint64_t to) {
    if (to > at) pieces.push_back({.offset = at, .length = to - at});
  };
  const ExtentList::Place over = list_.end_place();
  for (auto i = list_.first_after(offset); i != over; i = list_.next(i)) {
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
  auto i = list_.first_after(offset);
  if (i == list_.end_place()) return size_;
  return std::max(list_[i].offset, offset);
}

const Extent* ExtentMap::covering(uint64_t offset) const {
  auto i = list_.first_after(offset);
  if (i == list_.end_place() || list_[i].offset > offset) return nullptr;
  return &list_[i];
}

void ExtentMap::pin(uint32_t segment, uint64_t at) {
  std::vector<Extent> all;
  for (Extent e : list_) {
    if (e.where == Where::kLower) {
      e.where = Where::kSegment;
      e.segment = segment;
      e.at = at + e.offset;
      e.epoch = 0;
    }
    if (!all.empty() && joins(all.back(), e))
      all.back().length += e.length;
    else
      all.push_back(e);
  }
  list_.assign(all);
}

void ExtentMap::clear(const DeadSink& dead) {
  if (dead)
    for (const Extent& e : list_)
      if (e.where == Where::kSegment) dead(e);
  list_.clear();
  size_ = 0;
}

}  // namespace stoplog::fs
