// SPDX-License-Identifier: Apache-2.0
#include "snapshot/bundle_ranges.h"

#include <algorithm>
#include <cstring>

#include "base/sys_file.h"
#include "fs/codec.h"

namespace stoplog::snapshot {
namespace {

// A segment of 64 MiB has at most this many, at 16 bytes each.
constexpr uint64_t kMaxRanges = 1u << 22;
constexpr uint64_t kMaxEnd = INT64_MAX;
constexpr size_t kPage = 4096;

std::unexpected<Error> damaged() {
  return fail(Code::kCorrupt, "the bundle is damaged: a list of ranges");
}

bool is_zero(std::span<const std::byte> bytes) {
  // Equal to itself one byte further on, and beginning with zero.
  return bytes[0] == std::byte{0} &&
         std::memcmp(bytes.data(), bytes.data() + 1, bytes.size() - 1) == 0;
}

}  // namespace

std::string encode_ranges(const std::vector<fs::SegmentRange>& ranges) {
  std::string out;
  fs::Writer w(out);
  w.u64(ranges.size());
  for (const fs::SegmentRange& range : ranges) {
    w.u64(range.at);
    w.u64(range.length);
  }
  return out;
}

// Takes from `bytes` what the head still lacks.
Status RangeSink::head(std::span<const std::byte>& bytes) {
  const size_t fixed = sized_ == Sized::kYes ? 16 : 8;
  auto want = [&](size_t size) {
    size_t n = std::min(bytes.size(), size - std::min(size, head_.size()));
    head_.append(reinterpret_cast<const char*>(bytes.data()), n);
    bytes = bytes.subspan(n);
    return head_.size() >= size;
  };
  if (!want(fixed)) return {};
  fs::Reader first(head_);
  size_ = sized_ == Sized::kYes ? first.u64() : kMaxEnd;
  uint64_t count = first.u64();
  if (count > kMaxRanges || size_ > kMaxEnd) return damaged();
  if (!want(fixed + static_cast<size_t>(count) * 16)) return {};
  fs::Reader list(std::string_view(head_).substr(fixed));
  uint64_t end = 0;
  for (uint64_t i = 0; i < count; ++i) {
    fs::SegmentRange range{.at = list.u64(), .length = list.u64()};
    if (range.length == 0 || range.at < end || range.at > size_ ||
        range.length > size_ - range.at)
      return damaged();
    end = range.at + range.length;
    ranges_.push_back(range);
  }
  head_.clear();
  ready_ = true;
  return {};
}

// Pages of zeros stay holes: what compresses to nothing takes no space.
Status RangeSink::write(std::span<const std::byte> bytes, uint64_t at) {
  size_t i = 0;
  while (i < bytes.size()) {
    auto step = [&](size_t from) {
      return std::min<size_t>(kPage - (at + from) % kPage, bytes.size() - from);
    };
    if (is_zero(bytes.subspan(i, step(i)))) {
      i += step(i);
      continue;
    }
    size_t end = i + step(i);
    while (end < bytes.size() && !is_zero(bytes.subspan(end, step(end))))
      end += step(end);
    TRY(sys::pwrite_full(fd_, bytes.subspan(i, end - i), at + i));
    i = end;
  }
  return {};
}

Status RangeSink::take(std::span<const std::byte> bytes) {
  if (!ready_) TRY(head(bytes));
  while (!bytes.empty()) {
    if (now_ == ranges_.size()) return damaged();
    const fs::SegmentRange& range = ranges_[now_];
    size_t n = static_cast<size_t>(
        std::min<uint64_t>(bytes.size(), range.length - filled_));
    TRY(write(bytes.first(n), range.at + filled_));
    bytes = bytes.subspan(n);
    filled_ += n;
    if (filled_ < range.length) break;
    ++now_;
    filled_ = 0;
  }
  return {};
}

Status RangeSink::finish() const {
  if (!ready_ || now_ != ranges_.size()) return damaged();
  // A hole at the end has no byte that made the file that long.
  if (sized_ == Sized::kNo && !ranges_.empty()) {
    uint64_t end = ranges_.back().at + ranges_.back().length;
    if (TRY(sys::fstat(fd_)).size < end) return sys::ftruncate(fd_, end);
  }
  return {};
}

}  // namespace stoplog::snapshot
