// SPDX-License-Identifier: Apache-2.0
#include "fs/lent_objects.h"

#include "fs/view.h"

namespace stoplog::fs {

SegmentRange LentObjects::add(const Sha256Digest& digest, uint64_t size) {
  lent_.push_back({.digest = digest, .size = size, .content = nullptr});
  return {.segment = kFirst + static_cast<uint32_t>(lent_.size() - 1),
          .at = 0,
          .length = size};
}

Result<size_t> LentObjects::read(uint32_t segment, uint64_t at,
                                 std::span<std::byte> out) {
  if (segment - kFirst >= lent_.size())
    return fail(Code::kCorrupt, "no segment {}", segment);
  std::shared_ptr<const Content> content;
  {
    std::lock_guard lock(mutex_);
    Lent& lent = lent_[segment - kFirst];
    if (!lent.content) {
      if (!source_)
        return fail(Code::kDrift, "it was replaced by a commit since");
      lent.content = TRY(source_(lent.digest));
      if (lent.content->size() != lent.size) {
        lent.content.reset();
        return fail(Code::kCorrupt, "an object has another size than it had");
      }
    }
    content = lent.content;
  }
  return content->read(at, out);
}

}  // namespace stoplog::fs
