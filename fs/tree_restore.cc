// SPDX-License-Identifier: Apache-2.0
// Going back past a commit: what it replaced is copied from the object store.
#include "fs/restore.h"
#include "fs/tree_impl.h"

namespace stoplog::fs {

// Copies an object into a segment: the content that a commit replaced.
Result<SegmentRange> Tree::Impl::store_object(const Sha256Digest& digest,
                                              uint64_t size) {
  if (!options_.objects)
    return fail(Code::kInvalid, "what the commit replaced cannot be read here");
  auto content = TRY(options_.objects(digest));
  if (content->size() != size)
    return fail(Code::kCorrupt, "an object has another size than it had");
  SegmentRange range = TRY(segments_->allocate(size));
  std::vector<std::byte> block(std::min<uint64_t>(size, 1u << 20));
  for (uint64_t done = 0; done < size;) {
    size_t n = TRY(content->read(done, block));
    if (n == 0) return fail(Code::kCorrupt, "an object ends early");
    TRY(segments_->write({range.segment, range.at + done, n},
                         std::span(block).first(n)));
    done += n;
  }
  return range;
}

Status Tree::Impl::restore_replaced(State& state, Position at) {
  return fs::restore_replaced(
      state, TRY(base_maps_since(draft_dir_.get(), at)), base_->get(),
      [this](const Sha256Digest& digest, uint64_t size) {
        return store_object(digest, size);
      });
}

}  // namespace stoplog::fs
