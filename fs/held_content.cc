// SPDX-License-Identifier: Apache-2.0
#include "fs/held_content.h"

#include <algorithm>

namespace stoplog::fs {

Result<size_t> HeldContent::read(uint64_t offset,
                                 std::span<std::byte> out) const {
  if (offset >= map_.size()) return 0;
  out = out.first(std::min<uint64_t>(out.size(), map_.size() - offset));
  for (const Extent& e : map_.find(offset, out.size())) {
    std::span<std::byte> part = out.subspan(e.offset - offset, e.length);
    size_t n = 0;
    if (e.where == Where::kSegment)
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
  for (const Extent& e : map_.all()) {
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
