// SPDX-License-Identifier: Apache-2.0
// Content that lies in ranges of segments and of the real file, as it was at
// one position. Immutable; keeps what it needs alive.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "fs/extents.h"
#include "fs/real.h"
#include "fs/segments.h"
#include "fs/view.h"

namespace stoplog::fs {

class HeldContent : public Content {
 public:
  // `lower` reads the ranges of the real file; may be null when there are
  // none. `path` is for messages.
  HeldContent(std::shared_ptr<Segments> segments, ExtentMap map,
              std::shared_ptr<const Content> lower, std::string path)
      : segments_(std::move(segments)),
        map_(std::move(map)),
        lower_(std::move(lower)),
        path_(std::move(path)) {}
  uint64_t size() const override { return map_.size(); }
  Result<size_t> read(uint64_t offset, std::span<std::byte> out) const override;
  std::vector<Range> data() const override;

 private:
  std::shared_ptr<Segments> segments_;
  ExtentMap map_;
  std::shared_ptr<const Content> lower_;
  std::string path_;
};

}  // namespace stoplog::fs
