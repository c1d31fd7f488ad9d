// SPDX-License-Identifier: Apache-2.0
// Content that lies in ranges of segments and of the real file, as it was at
// one position. Immutable; keeps what it needs alive.
#pragma once

#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "fs/extents.h"
#include "fs/lent_objects.h"
#include "fs/real.h"
#include "fs/segments.h"
#include "fs/state.h"
#include "fs/view.h"

namespace stoplog::fs {

// The seals of a draft at one position; each range is checked once.
class SealChecks {
 public:
  explicit SealChecks(std::shared_ptr<const State::SealTable> table)
      : table_(std::move(table)) {}
  // Code::kCorrupt when a sealed range that `extent` touches no longer has its
  // hash.
  Status check(Segments& segments, const Extent& extent);
  // What is sealed of [at, end), in order.
  std::vector<SegmentRange> within(uint32_t segment, uint64_t at,
                                   uint64_t end) const;

 private:
  const std::shared_ptr<const State::SealTable> table_;
  std::mutex mutex_;
  std::set<std::pair<uint32_t, uint64_t>> done_;  // by mutex_
};

class HeldContent : public Content {
 public:
  // `lower` reads the ranges of the real file, `lent` what commits replaced;
  // either may be null when there are none. `path` is for messages.
  HeldContent(std::shared_ptr<Segments> segments,
              std::shared_ptr<SealChecks> seals,
              std::shared_ptr<const ExtentMap> map,
              std::shared_ptr<const Content> lower, std::string path,
              std::shared_ptr<LentObjects> lent = nullptr)
      : segments_(std::move(segments)),
        seals_(std::move(seals)),
        map_(std::move(map)),
        lower_(std::move(lower)),
        path_(std::move(path)),
        lent_(std::move(lent)) {}
  uint64_t size() const override { return map_->size(); }
  Result<size_t> read(uint64_t offset, std::span<std::byte> out) const override;
  std::vector<Range> data() const override;

 private:
  class Collector;
  void add_segment(const Extent& e, Collector& out) const;
  std::shared_ptr<Segments> segments_;
  std::shared_ptr<SealChecks> seals_;
  std::shared_ptr<const ExtentMap> map_;
  std::shared_ptr<const Content> lower_;
  std::string path_;
  std::shared_ptr<LentObjects> lent_;
};

}  // namespace stoplog::fs
