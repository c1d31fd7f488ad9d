// SPDX-License-Identifier: Apache-2.0
// Checksums of what marks have frozen: made in the background, compared when a
// sealed range is read for the first time.
#include <algorithm>

#include "base/hash.h"
#include "fs/tree_impl.h"

namespace stoplog::fs {
namespace {

constexpr uint64_t kSealStep = 256u << 10;
constexpr size_t kSealBatch = 128;  // records a write
// Below this, to ask for holes costs as much as to read them.
constexpr uint64_t kAskFrom = 4 * kSealStep;

// What of a frozen extent no seal covers. Of a file that was cut in two the
// parts keep the seals of the whole: to seal them anew from where each begins
// would read a large file again for every page that is written to it.
void add_unsealed(const Extent& e, const State::SealMap* seals,
                  std::vector<SegmentRange>& out) {
  uint64_t at = e.at;
  const uint64_t end = e.at + e.length;
  if (seals != nullptr) {
    auto it = seals->upper_bound(at);
    if (it != seals->begin()) --it;
    for (; it != seals->end() && it->first < end; ++it) {
      uint64_t stop = it->first + it->second.length;
      if (stop <= at) continue;
      if (it->first > at)
        out.push_back(
            {.segment = e.segment, .at = at, .length = it->first - at});
      at = stop;
    }
  }
  if (at < end)
    out.push_back({.segment = e.segment, .at = at, .length = end - at});
}

}  // namespace

// The frozen ranges of a file that have no seal yet: of as much of its list,
// from `at` on, as can be looked at in one turn with the tree's lock. True when
// some of it is open.
bool Tree::Impl::unsealed_in(const ExtentList& list, ExtentList::Place& at,
                             uint32_t epoch,
                             std::vector<SegmentRange>& out) const {
  constexpr size_t kTurn = 8 * ExtentList::kMost;
  bool open = false;
  for (size_t n = 0; n < kTurn && at != list.end_place(); ++n) {
    const Extent& e = list[at];
    at = list.next(at);
    if (e.where != Where::kSegment) continue;
    if (e.epoch == epoch)
      open = true;
    else
      add_unsealed(e, state_.seals(e.segment), out);
  }
  return open;
}

// Of all files. Requests that read go on meanwhile: of a file of 10 GiB there
// are 40,000 seals to walk over. Those that write come in between, where a file
// has many ranges: a copy of its list is looked at.
std::vector<SegmentRange> Tree::Impl::unsealed_ranges() {
  std::unordered_set<Serial> candidates;
  {
    std::unique_lock lock(mutex_);
    candidates.swap(unsealed_);
  }
  std::vector<SegmentRange> ranges;
  std::vector<std::pair<Serial, ExtentList>> large;
  std::vector<Serial> open;
  uint32_t epoch = 0;
  {
    std::shared_lock lock(mutex_);
    epoch = state_.epoch();
    for (Serial serial : candidates) {
      const Held* node = state_.find(serial);
      if (node == nullptr || !node->body) continue;
      const ExtentList& list = node->body->map.all();
      ExtentList::Place at;
      if (list.leaves() > 1)
        large.emplace_back(serial, list);
      else if (unsealed_in(list, at, epoch, ranges))
        open.push_back(serial);
    }
  }
  for (const auto& [serial, list] : large) {
    bool is_open = false;
    for (ExtentList::Place at; at != list.end_place();) {
      std::shared_lock turn(mutex_);
      is_open = unsealed_in(list, at, epoch, ranges) || is_open;
    }
    if (is_open) open.push_back(serial);
  }
  std::unique_lock lock(mutex_);
  unsealed_.insert(open.begin(), open.end());
  return ranges;
}

// Hashes what the last mark froze. From then on a flipped bit is found. What is
// hashed is on the disk before: else a loss of power, which may take what
// nobody synced, would look like damage. Holes have nothing to be flipped.
Status Tree::Impl::seal() {
  const std::vector<SegmentRange> ranges = unsealed_ranges();
  // After every command: most have written nothing, and the block is a
  // quarter of a megabyte to clear.
  if (ranges.empty()) return {};
  TRY(segments_->sync());
  std::vector<std::byte> block(kSealStep);
  std::vector<Record> records;
  auto keep = [&]() -> Status {
    if (records.empty()) return {};
    std::unique_lock lock(mutex_);
    return append(std::exchange(records, {}));
  };
  for (const SegmentRange& r : ranges) {
    const uint64_t end = r.at + r.length;
    for (uint64_t at = r.at; at < end; at += kSealStep) {
      if (r.length >= kAskFrom) {
        uint64_t data = segments_->next_data(r.segment, at, end);
        if (data == end) break;
        at += (data - at) / kSealStep * kSealStep;
      }
      std::span<std::byte> bytes =
          std::span(block).first(std::min(kSealStep, end - at));
      TRY(read_segment(r.segment, at, bytes, false));
      records.push_back(
          SealRecord{.segment = r.segment,
                     .at = at,
                     .length = static_cast<uint32_t>(bytes.size()),
                     .hash = xxh3_64(bytes)});
      if (records.size() == kSealBatch) TRY(keep());
    }
  }
  return keep();
}

// The first read of a sealed range compares it with its hash.
Status Tree::Impl::check_seals(uint32_t segment, uint64_t at, size_t length) {
  struct Range {
    uint64_t at;
    State::Seal seal;
  };
  std::vector<Range> ranges;
  {
    std::shared_lock lock(mutex_);
    const State::SealMap* seals = state_.seals(segment);
    if (seals == nullptr) return {};
    auto it = seals->upper_bound(at);
    if (it != seals->begin()) --it;
    std::lock_guard leaf(verified_mutex_);
    for (; it != seals->end() && it->first < at + length; ++it)
      if (it->first + it->second.length > at &&
          !verified_.contains(uint64_t{segment} << 36 ^ it->first))
        ranges.push_back({it->first, it->second});
  }
  for (const Range& range : ranges) {
    std::vector<std::byte> bytes(range.seal.length);
    // A copy that ends with a hole ends before it: the rest is zeroes.
    size_t n = TRY(segments_->read(segment, range.at, bytes));
    std::ranges::fill(std::span(bytes).subspan(n), std::byte{0});
    if (xxh3_64(bytes) != range.seal.hash)
      return std::unexpected(Error(
          Code::kCorrupt,
          fmt::format("segment {:08x} is damaged at {}", segment, range.at),
          EIO));
    std::lock_guard leaf(verified_mutex_);
    verified_.insert(uint64_t{segment} << 36 ^ range.at);
  }
  return {};
}

}  // namespace stoplog::fs
