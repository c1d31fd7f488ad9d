// SPDX-License-Identifier: Apache-2.0
// Sparse data in a section: a list of ranges, then their bytes one after the
// other. RangeSink writes them to a file as they come, in pieces of any size,
// and checks the list before it believes it.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "fs/segments.h"

namespace stoplog::snapshot {

std::string encode_ranges(const std::vector<fs::SegmentRange>& ranges);

class RangeSink {
 public:
  // kYes: the size of the whole comes before the list.
  enum class Sized { kNo, kYes };
  explicit RangeSink(int fd, Sized sized = Sized::kNo)
      : fd_(fd), sized_(sized) {}
  Status take(std::span<const std::byte> bytes);
  // Code::kCorrupt when bytes are missing.
  Status finish() const;
  const std::vector<fs::SegmentRange>& ranges() const { return ranges_; }
  uint64_t size() const { return size_; }

 private:
  Status head(std::span<const std::byte>& bytes);
  Status write(std::span<const std::byte> bytes, uint64_t at);

  int fd_;
  Sized sized_;
  std::string head_;
  bool ready_ = false;
  std::vector<fs::SegmentRange> ranges_;
  uint64_t size_ = 0;
  size_t now_ = 0;       // the range that is being filled
  uint64_t filled_ = 0;  // of it
};

}  // namespace stoplog::snapshot
