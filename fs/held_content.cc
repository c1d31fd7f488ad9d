// SPDX-License-Identifier: Apache-2.0
#include "fs/held_content.h"

#include <algorithm>
#include <optional>

namespace stoplog::fs {
namespace {

// Of extents from here on it is asked where they have holes; below, to ask
// costs as much as to read.
constexpr uint64_t kAskFrom = 1u << 20;

}  // namespace

std::vector<SegmentRange> SealChecks::within(uint32_t segment, uint64_t at,
                                             uint64_t end) const {
  std::vector<SegmentRange> ranges;
  auto found = table_->find(segment);
  if (found == table_->end()) return ranges;
  auto it = found->second.upper_bound(at);
  if (it != found->second.begin()) --it;
  for (; it != found->second.end() && it->first < end; ++it) {
    uint64_t stop = std::min(it->first + it->second.length, end);
    uint64_t begin = std::max(it->first, at);
    if (begin >= stop) continue;
    ranges.push_back({.segment = segment, .at = begin, .length = stop - begin});
    at = stop;
  }
  return ranges;
}

Status SealChecks::check(Segments& segments, const Extent& extent) {
  auto found = table_->find(extent.segment);
  if (found == table_->end()) return {};
  const State::SealMap& seals = found->second;
  auto it = seals.upper_bound(extent.at);
  if (it != seals.begin()) --it;
  for (; it != seals.end() && it->first < extent.at + extent.length; ++it) {
    if (it->first + it->second.length <= extent.at) continue;
    {
      std::lock_guard lock(mutex_);
      if (done_.contains({extent.segment, it->first})) continue;
    }
    std::vector<std::byte> bytes(it->second.length);
    // A copy that ends with a hole ends before it: the rest is zeroes.
    size_t n = TRY(segments.read(extent.segment, it->first, bytes));
    std::ranges::fill(std::span(bytes).subspan(n), std::byte{0});
    if (xxh3_64(bytes) != it->second.hash)
      return std::unexpected(
          Error(Code::kCorrupt,
                fmt::format("segment {:08x} is damaged at {}", extent.segment,
                            it->first),
                EIO));
    std::lock_guard lock(mutex_);
    done_.insert({extent.segment, it->first});
  }
  return {};
}

Result<size_t> HeldContent::read(uint64_t offset,
                                 std::span<std::byte> out) const {
  if (offset >= map_->size()) return 0;
  out = out.first(std::min<uint64_t>(out.size(), map_->size() - offset));
  for (const Extent& e : map_->find(offset, out.size())) {
    std::span<std::byte> part = out.subspan(e.offset - offset, e.length);
    size_t n = 0;
    bool lent = e.where == Where::kSegment && lent_ && lent_->has(e.segment);
    if (e.where == Where::kSegment && !lent && seals_)
      TRY_CTX(seals_->check(*segments_, e), path_);
    if (lent)
      n = TRY_CTX(lent_->read(e.segment, e.at, part), path_);
    else if (e.where == Where::kSegment)
      n = TRY_CTX(segments_->read(e.segment, e.at, part), path_);
    else if (e.where == Where::kLower && lower_)
      n = TRY(lower_->read(e.offset, part));
    // Holes, and open extents cut short by a power loss, read as zeroes.
    std::ranges::fill(part.subspan(n), std::byte{0});
  }
  return out.size();
}

// Ranges that follow each other become one.
class HeldContent::Collector {
 public:
  void add(uint64_t begin, uint64_t end) {
    if (begin >= end) return;
    if (!ranges.empty() && ranges.back().offset + ranges.back().length == begin)
      ranges.back().length += end - begin;
    else
      ranges.push_back({begin, end - begin});
  }
  std::vector<Range> ranges;
};

// A hole of the segment is one of the content. What is sealed in it had data
// once: it is to be read, and then found to be damaged.
void HeldContent::add_segment(const Extent& e, Collector& out) const {
  const uint64_t end = e.at + e.length;
  auto shown = [&](uint64_t at) { return e.offset + (at - e.at); };
  for (uint64_t at = e.at; at < end;) {
    uint64_t data = segments_->next_data(e.segment, at, end);
    if (seals_)
      for (const SegmentRange& r : seals_->within(e.segment, at, data))
        out.add(shown(r.at), shown(r.at + r.length));
    at = segments_->next_hole(e.segment, data, end);
    out.add(shown(data), shown(at));
  }
}

std::vector<Content::Range> HeldContent::data() const {
  Collector out;
  std::optional<std::vector<Range>> lower;
  for (const Extent& e : map_->all()) {
    if (e.where == Where::kZero) continue;
    bool lent = e.where == Where::kSegment && lent_ && lent_->has(e.segment);
    if (e.length < kAskFrom || lent ||
        (e.where == Where::kLower && lower_ == nullptr)) {
      out.add(e.offset, e.end());
    } else if (e.where == Where::kSegment) {
      add_segment(e, out);
    } else {
      if (!lower) lower = lower_->data();
      auto it = std::ranges::upper_bound(
          *lower, e.offset, {},
          [](const Range& r) { return r.offset + r.length; });
      for (; it != lower->end() && it->offset < e.end(); ++it)
        out.add(std::max(it->offset, e.offset),
                std::min(it->offset + it->length, e.end()));
    }
  }
  return std::move(out.ranges);
}

}  // namespace stoplog::fs
