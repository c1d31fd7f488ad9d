// SPDX-License-Identifier: Apache-2.0
#include "gate/stored_content.h"

namespace stoplog::gate {

class StoredContents::Stored : public fs::Content {
 public:
  Stored(std::shared_ptr<Shared> shared, const Sha256Digest& id, uint64_t size)
      : shared_(std::move(shared)), id_(id), size_(size) {}

  uint64_t size() const override { return size_; }

  Result<size_t> read(uint64_t offset,
                      std::span<std::byte> out) const override {
    std::lock_guard lock(shared_->mutex);
    TRY(load());
    size_t got = TRY(open_->read(offset, out));
    if (offset + got >= end_) open_.reset();
    return got;
  }

  // What cannot be read has no holes: read() then says why.
  std::vector<Range> data() const override {
    std::lock_guard lock(shared_->mutex);
    if (!load()) return Content::data();
    std::vector<Range> ranges = open_->data();
    end_ = ranges.empty() ? 0 : ranges.back().offset + ranges.back().length;
    if (ranges.empty()) open_.reset();
    return ranges;
  }

 private:
  Status load() const {
    if (open_) return {};
    open_ = TRY(shared_->store.content(id_));
    end_ = size_;
    return {};
  }

  std::shared_ptr<Shared> shared_;
  Sha256Digest id_;
  uint64_t size_;
  // Guarded by shared_->mutex: while it is being read, and where that ends.
  mutable std::shared_ptr<const fs::Content> open_;
  mutable uint64_t end_ = 0;
};

Result<std::shared_ptr<const fs::Content>> StoredContents::of(
    const Sha256Digest& id, uint64_t size) {
  std::lock_guard lock(shared_->mutex);
  // Its own words for what is missing.
  if (!TRY(shared_->store.has(id))) return shared_->store.content(id);
  return std::make_shared<Stored>(shared_, id, size);
}

}  // namespace stoplog::gate
