// SPDX-License-Identifier: Apache-2.0
// What commits replaced, to a view as if it lay in segments of the draft: each
// object has a segment number of its own, which no segment reaches, and is
// opened when it is read. Any thread.
#pragma once

#include <map>
#include <memory>
#include <mutex>

#include "fs/segments.h"
#include "fs/tree_types.h"

namespace stoplog::fs {

class LentObjects {
 public:
  explicit LentObjects(ObjectSource source) : source_(std::move(source)) {}
  // Before anything is read.
  SegmentRange add(const Sha256Digest& digest, uint64_t size);
  static bool has(uint32_t segment) { return segment >= kFirst; }
  // Code::kDrift without a source, kCorrupt when it is another object.
  Result<size_t> read(uint32_t segment, uint64_t at, std::span<std::byte> out);

 private:
  static constexpr uint32_t kFirst = 1u << 31;
  struct Lent {
    Sha256Digest digest;
    uint64_t size = 0;
    std::shared_ptr<const Content> content;  // by mutex_
  };
  ObjectSource source_;
  std::mutex mutex_;  // a leaf
  std::vector<Lent> lent_;
};

}  // namespace stoplog::fs
