// SPDX-License-Identifier: Apache-2.0
#include "fs/extent_list.h"

#include <algorithm>

namespace stoplog::fs {

ExtentList::Place ExtentList::next(Place place) const {
  if (++place.at == leaf(place.leaf).size() && place.leaf < rest_.size())
    return {place.leaf + 1, 0};
  return place;
}

ExtentList::Place ExtentList::previous(Place place) const {
  if (place.at > 0) return {place.leaf, place.at - 1};
  return {place.leaf - 1, leaf(place.leaf - 1).size() - 1};
}

ExtentList::Place ExtentList::first_after(uint64_t offset) const {
  // Appending is the common case: look at the end first.
  if (empty() || back().end() <= offset) return end_place();
  auto behind = std::ranges::partition_point(
      rest_, [&](const Later& each) { return each.offset <= offset; });
  Place place{static_cast<size_t>(behind - rest_.begin()), 0};
  const Leaf& list = leaf(place.leaf);
  auto it = std::ranges::partition_point(
      list, [&](const Extent& e) { return e.end() <= offset; });
  place.at = static_cast<size_t>(it - list.begin());
  if (it == list.end()) return {place.leaf + 1, 0};
  return place;
}

void ExtentList::count(const Extent& extent, bool comes) {
  const uint64_t length = comes ? extent.length : -extent.length;
  const size_t one = comes ? 1 : size_t(-1);
  size_ += one;
  bytes_ += length;
  if (extent.where == Where::kSegment) segment_bytes_ += length;
  if (extent.where == Where::kLower) lower_ += one;
}

// Leaves of others as well: from now on theirs.
void ExtentList::part(size_t begin, size_t end) {
  for (size_t i = std::max<size_t>(begin, 1); i < end; ++i)
    if (!rest_[i - 1].leaf.is_alone())
      parted_ += leaf(i).size() * sizeof(Extent);
}

// As large as it may become: a vector that grows by itself would take twice.
ExtentList::Leaf ExtentList::with_room(Leaf::const_iterator begin,
                                       Leaf::const_iterator end) {
  Leaf leaf;
  leaf.reserve(kMost + 2);
  leaf.assign(begin, end);
  return leaf;
}

ExtentList::Leaf& ExtentList::own(size_t i) {
  if (i == 0) return first_;
  Ref& leaf = rest_[i - 1].leaf;
  if (!leaf.is_alone()) {
    part(i, i + 1);
    leaf = Ref(with_room((*leaf).begin(), (*leaf).end()));
  }
  return leaf.own();
}

// The first leaf is always there: what follows takes its place.
void ExtentList::drop(size_t begin, size_t end) {
  if (begin >= end) return;
  part(begin, end);
  if (begin == 0) {
    first_.clear();
    if (end == leaves()) return rest_.clear();
    part(end, end + 1);
    Ref& next = rest_[end - 1].leaf;
    first_ = next.is_alone() ? std::move(next.own()) : *next;
    ++begin, ++end;
  }
  rest_.erase(rest_.begin() + static_cast<long>(begin) - 1,
              rest_.begin() + static_cast<long>(end) - 1);
}

void ExtentList::replace(Place first, Place last,
                         std::span<const Extent> with) {
  for (Place at = first; at != last; at = next(at)) count((*this)[at], false);
  for (const Extent& extent : with) count(extent, true);
  size_t until = last.at;
  if (last.leaf > first.leaf) {
    // The last leaf loses its beginning, those between go.
    size_t gone = last.leaf;
    if (last.at == leaf(last.leaf).size()) {
      ++gone;
    } else if (last.at > 0) {
      Leaf& list = own(last.leaf);
      list.erase(list.begin(), list.begin() + static_cast<long>(last.at));
      rest_[last.leaf - 1].offset = list.front().offset;
    }
    drop(first.leaf + 1, gone);
    until = leaf(first.leaf).size();
  }
  if (first.at == until && with.empty()) return tidy(first.leaf);
  Leaf& list = own(first.leaf);
  size_t same = std::min(until - first.at, with.size());
  auto at = std::copy_n(with.begin(), same,
                        list.begin() + static_cast<long>(first.at));
  if (same < with.size())
    list.insert(at, with.begin() + static_cast<long>(same), with.end());
  else
    list.erase(at, list.begin() + static_cast<long>(until));
  tidy(first.leaf);
}

// After a change of leaf `i`: none is empty or too large, and two small ones
// beside each other are one.
void ExtentList::tidy(size_t i) {
  size_t n = leaf(i).size();
  if (n == 0) return drop(i, i + 1);
  if (i > 0) rest_[i - 1].offset = leaf(i).front().offset;
  if (n > kMost) return split(i);
  if (n >= kFew || rest_.empty()) return;
  size_t left = i < rest_.size() ? i : i - 1;
  if (leaf(left).size() + leaf(left + 1).size() > kMost * 3 / 4) return;
  Leaf& list = own(left);
  const Leaf& more = leaf(left + 1);
  list.insert(list.end(), more.begin(), more.end());
  drop(left + 1, left + 2);
}

// In the middle; but what is written in order leaves full leaves behind.
void ExtentList::split(size_t i) {
  Leaf& list = own(i);
  size_t keep = i == rest_.size() ? kMost : list.size() / 2;
  auto middle = list.begin() + static_cast<long>(keep);
  Leaf upper = with_room(middle, list.end());
  list.erase(middle, list.end());
  const uint64_t offset = upper.front().offset;
  rest_.insert(rest_.begin() + static_cast<long>(i),
               Later{offset, Ref(std::move(upper))});
}

void ExtentList::push_back(const Extent& extent) {
  count(extent, true);
  own(rest_.size()).push_back(extent);
  tidy(rest_.size());
}

void ExtentList::lengthen_back(uint64_t by) {
  Extent& last = own(rest_.size()).back();
  last.length += by;
  bytes_ += by;
  if (last.where == Where::kSegment) segment_bytes_ += by;
}

void ExtentList::assign(std::span<const Extent> all) {
  clear();
  for (const Extent& extent : all) push_back(extent);
}

void ExtentList::clear() {
  drop(0, leaves());
  size_ = lower_ = 0;
  bytes_ = segment_bytes_ = 0;
}

bool ExtentList::operator==(const ExtentList& other) const {
  if (size_ != other.size_ || bytes_ != other.bytes_) return false;
  Place a, b;
  while (a != end_place()) {
    if (a.at == 0 && b.at == 0 && a.leaf > 0 && b.leaf > 0 &&
        rest_[a.leaf - 1].leaf == other.rest_[b.leaf - 1].leaf) {
      a = next({a.leaf, leaf(a.leaf).size() - 1});
      b = other.next({b.leaf, other.leaf(b.leaf).size() - 1});
      continue;
    }
    if (!((*this)[a] == other[b])) return false;
    a = next(a);
    b = other.next(b);
  }
  return true;
}

uint64_t ExtentList::copy_weight() const {
  return first_.size() * sizeof(Extent) + rest_.size() * sizeof(Later);
}

}  // namespace stoplog::fs
