// SPDX-License-Identifier: Apache-2.0
#include "fs/held_content.h"

#include <algorithm>

namespace stoplog::fs {

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

std::vector<Content::Range> HeldContent::data() const {
  std::vector<Range> ranges;
  for (const Extent& e : map_->all()) {
    if (e.where == Where::kZero) continue;
    if (!ranges.empty() &&
        ranges.back().offset + ranges.back().length == e.offset)
      ranges.back().length += e.length;
    else
      ranges.push_back({e.offset, e.length});
  }
  return ranges;
}

}  // namespace stoplog::fs
