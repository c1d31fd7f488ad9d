// SPDX-License-Identifier: Apache-2.0
#include "fs/segments.h"

#include <algorithm>

#include "base/sys_node.h"
#include "fs/layout.h"

namespace stoplog::fs {
namespace {

constexpr uint64_t kPage = 4096;
constexpr uint64_t kMinGapped = 512;
constexpr unsigned kGapBits = 16;

uint64_t align(uint64_t at, uint64_t length) {
  // Pages for what can be punched later; small files are packed.
  uint64_t unit = length >= kPage ? kPage : 16;
  return (at + unit - 1) / unit * unit;
}

}  // namespace

Result<std::unique_ptr<Segments>> Segments::open(int draft_dir, bool writable) {
  std::unique_ptr<Segments> segments(new Segments(writable));
  if (writable) {
    auto made = sys::mkdirat(draft_dir, layout::kSegmentDir, layout::kDirMode);
    if (!made && made.error().err() != EEXIST)
      return std::unexpected(std::move(made).error().context("segments"));
  }
  auto dir =
      sys::openat(draft_dir, layout::kSegmentDir, O_RDONLY | O_DIRECTORY);
  if (!dir && dir.error().err() == ENOENT && !writable) return segments;
  if (!dir) return std::unexpected(std::move(dir).error().context("segments"));
  segments->dir_ = std::move(*dir);
  std::vector<uint32_t> numbers = TRY(segments->list());
  if (!numbers.empty()) segments->next_ = numbers.back() + 1;
  return segments;
}

Result<std::vector<uint32_t>> Segments::list() const {
  std::vector<uint32_t> numbers;
  if (!dir_) return numbers;
  TRY(sys::list_dir(dir_.get(),
                    [&](std::string_view name, unsigned char, uint64_t) {
                      if (auto number = layout::parse_number(name))
                        numbers.push_back(*number);
                    }));
  std::ranges::sort(numbers);
  return numbers;
}

Status Segments::go_on(uint32_t next, uint64_t end) {
  std::lock_guard lock(mutex_);
  if (next > next_) next_ = next;
  uint32_t last = next_ - 1;
  auto st = sys::statat(dir_.get(), layout::segment_name(last));
  if (!st && st.error().err() == ENOENT) return {};
  if (!st) return std::unexpected(std::move(st).error().context("segments"));
  bool is_whole = last >= next || st->size >= end;
  if (!is_whole || st->nlink != 1 || st->size >= kRoll) return {};
  active_ = last;
  active_end_ = align(st->size, kPage);
  return {};
}

Status Segments::start_new_locked() {
  uint32_t number = next_;
  FdCache::Opening opening(fds_, number);
  Fd fd = TRY_CTX(sys::openat(dir_.get(), layout::segment_name(number),
                              O_RDWR | O_CREAT | O_EXCL, layout::kFileMode),
                  "segments");
  fds_.put(opening, std::move(fd));
  mutable_[number] = true;
  next_ = number + 1;
  active_ = number;
  active_end_ = 0;
  return {};
}

Result<SegmentRange> Segments::allocate(uint64_t length,
                                        const SegmentRange& behind,
                                        Claim* claim) {
  if (!writable_) return fail_errno(EROFS);
  std::lock_guard lock(mutex_);
  if (active_ == 0 || (active_end_ > 0 && active_end_ + length > kRoll))
    TRY(start_new_locked());
  bool continues =
      behind.segment == active_ && behind.at + behind.length == active_end_;
  uint64_t at = continues ? active_end_ : align(active_end_, length);
  // Not before the smallest, of which there may be millions: each is kept.
  if (at > active_end_ && length >= kMinGapped)
    gaps_[active_].push_back(active_end_ << kGapBits | (at - active_end_));
  active_end_ = at + length;
  allocated_ += length;
  SegmentRange range{.segment = active_, .at = at, .length = length};
  if (claim != nullptr) {
    claim->segments_ = this;
    claim->range_ = range;
    claims_.push_back(range);
  }
  return range;
}

uint64_t Segments::end_of_gap(uint32_t segment, uint64_t end) {
  std::lock_guard lock(mutex_);
  auto gaps = gaps_.find(segment);
  if (gaps == gaps_.end()) return end;
  auto it = std::ranges::lower_bound(gaps->second, end << kGapBits);
  if (it == gaps->second.end() || *it >> kGapBits != end) return end;
  return end + (*it & ((1u << kGapBits) - 1));
}

// As many as there are writers at the moment.
void Segments::release(const SegmentRange& range, bool recorded) {
  if (!recorded) (void)punch(range);
  std::lock_guard lock(mutex_);
  auto it = std::ranges::find_if(claims_, [&](const SegmentRange& r) {
    return r.segment == range.segment && r.at == range.at;
  });
  if (it == claims_.end()) return;
  *it = claims_.back();
  claims_.pop_back();
}

std::vector<SegmentRange> Segments::claimed() {
  std::lock_guard lock(mutex_);
  return claims_;
}

Result<FdHandle> Segments::handle(uint32_t segment) {
  if (FdHandle fd = fds_.find(segment)) return fd;
  if (!dir_) return fail_errno(ENOENT, "no segment {}", segment);
  FdCache::Opening opening(fds_, segment);
  auto fd = sys::openat(dir_.get(), layout::segment_name(segment),
                        writable_ ? O_RDWR : O_RDONLY);
  if (!fd)
    return std::unexpected(
        Error(Code::kCorrupt, fmt::format("segment {:08x} is missing", segment),
              EIO));
  return fds_.put(opening, std::move(*fd));
}

Status Segments::write(const SegmentRange& range,
                       std::span<const std::byte> data) {
  FdHandle fd = TRY(handle(range.segment));
  TRY(sys::pwrite_full(fd->get(), data, range.at));
  note_written(range.segment);
  return {};
}

Status Segments::write_thin(const SegmentRange& range,
                            std::span<const std::byte> data, bool sparse) {
  if (!sparse) return write(range, data);
  auto is_zero = [](std::span<const std::byte> page) {
    return std::ranges::all_of(page,
                               [](std::byte b) { return b == std::byte{0}; });
  };
  for (uint64_t at = 0; at < data.size(); at += kPage) {
    uint64_t n = std::min<uint64_t>(kPage, data.size() - at);
    if (at + n < data.size() && is_zero(data.subspan(at, n))) continue;
    TRY(write({range.segment, range.at + at, n}, data.subspan(at, n)));
  }
  return {};
}

void Segments::note_written(uint32_t segment) {
  std::lock_guard lock(mutex_);
  dirty_.insert(segment);
}

Result<size_t> Segments::read(uint32_t segment, uint64_t at,
                              std::span<std::byte> out) {
  FdHandle fd = TRY(handle(segment));
  return sys::pread_full(fd->get(), out, at);
}

uint64_t Segments::next_data(uint32_t segment, uint64_t at, uint64_t end) {
  auto fd = handle(segment);
  if (!fd) return at;
  auto data = sys::seek((*fd)->get(), at, SEEK_DATA);
  if (data) return std::min(*data, end);
  return data.error().err() == ENXIO ? end : at;
}

uint64_t Segments::next_hole(uint32_t segment, uint64_t at, uint64_t end) {
  auto fd = handle(segment);
  if (!fd) return end;
  auto hole = sys::seek((*fd)->get(), at, SEEK_HOLE);
  return hole ? std::min(*hole, end) : end;
}

Result<Segments::Whole> Segments::create_whole(uint64_t length, Claim& claim) {
  if (!writable_) return fail_errno(EROFS);
  std::lock_guard lock(mutex_);
  uint32_t before = active_;
  uint64_t end = active_end_;
  TRY(start_new_locked());
  Whole whole{.segment = active_, .fd = fds_.find(active_)};
  active_ = before;
  active_end_ = end;
  if (!whole.fd) return fail_errno(EIO);
  claim.segments_ = this;
  claim.range_ = {.segment = whole.segment, .at = 0, .length = length};
  claims_.push_back(claim.range_);
  return whole;
}

bool Segments::is_mutable(uint32_t segment) {
  if (!writable_) return false;
  {
    std::lock_guard lock(mutex_);
    if (auto it = mutable_.find(segment); it != mutable_.end())
      return it->second;
  }
  auto st = sys::statat(dir_.get(), layout::segment_name(segment));
  bool answer = st && st->nlink == 1;
  std::lock_guard lock(mutex_);
  // Shared meanwhile: what link_into() said counts.
  return mutable_.emplace(segment, answer).first->second;
}

Status Segments::punch(const SegmentRange& range) {
  if (!is_mutable(range.segment)) return fail_errno(EPERM);
  uint64_t begin = (range.at + kPage - 1) / kPage * kPage;
  uint64_t end = (range.at + range.length) / kPage * kPage;
  if (begin >= end) return {};
  FdHandle fd = TRY(handle(range.segment));
  return sys::fallocate(fd->get(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
                        begin, end - begin);
}

Status Segments::remove(uint32_t segment) {
  {
    std::lock_guard lock(mutex_);
    if (active_ == segment) active_ = 0;
    dirty_.erase(segment);
    gaps_.erase(segment);
    removed_.insert(segment);  // a sync under way may have it on its list
  }
  Status done = sys::unlinkat(dir_.get(), layout::segment_name(segment));
  fds_.drop(segment);  // after: an fd that came back would keep its space
  return done;
}

Status Segments::sync() {
  uint64_t failed = 0;
  {
    std::lock_guard lock(mutex_);
    failed = failed_rounds_;
  }
  std::lock_guard one(sync_mutex_);
  Status done = sync_round();
  std::lock_guard lock(mutex_);
  if (!done)
    ++failed_rounds_;
  else if (failed_rounds_ != failed)
    return fail_errno(EIO, "segments");  // ours may have been among them
  return done;
}

Status Segments::sync_round() {
  std::set<uint32_t> mine;
  {
    std::lock_guard lock(mutex_);
    mine.swap(dirty_);
  }
  Status result;
  bool any = !mine.empty();
  for (uint32_t segment : mine) {
    auto fd = handle(segment);
    Status done = fd ? sys::fdatasync((*fd)->get())
                     : Status(std::unexpected(std::move(fd).error()));
    if (done) continue;
    std::lock_guard lock(mutex_);
    if (removed_.contains(segment)) continue;
    dirty_.insert(segment);
    result = std::move(done);
  }
  // The names of new segments must survive as well.
  if (any && result) result = sys::fsync(dir_.get());
  return result;
}

uint32_t Segments::seal_all() {
  std::lock_guard lock(mutex_);
  active_ = 0;
  return next_ - 1;
}

Status Segments::link_into(int to_draft_dir) {
  auto made = sys::mkdirat(to_draft_dir, layout::kSegmentDir, layout::kDirMode);
  if (!made && made.error().err() != EEXIST)
    return std::unexpected(std::move(made).error().context("segments"));
  Fd to = TRY(
      sys::openat(to_draft_dir, layout::kSegmentDir, O_RDONLY | O_DIRECTORY));
  std::vector<uint32_t> numbers;
  {
    // From now on no write or punch goes to what exists.
    std::lock_guard lock(mutex_);
    active_ = 0;
    numbers = TRY(list());
    for (uint32_t segment : numbers) mutable_[segment] = false;
  }
  for (uint32_t segment : numbers) {
    std::string name = layout::segment_name(segment);
    TRY_CTX(sys::linkat(dir_.get(), name, to.get(), name), "segments");
  }
  return sys::fsync(to.get());
}

Result<uint64_t> Segments::disk_bytes() {
  uint64_t sum = 0;
  for (uint32_t segment : TRY(list()))
    if (auto st = sys::statat(dir_.get(), layout::segment_name(segment)))
      sum += st->blocks * 512;
  return sum;
}

}  // namespace stoplog::fs
