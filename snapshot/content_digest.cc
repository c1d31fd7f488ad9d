// SPDX-License-Identifier: Apache-2.0
#include "snapshot/content_digest.h"

#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "base/sys_file.h"

namespace stoplog::snapshot {
namespace {

constexpr size_t kBlock = 256 * 1024;
constexpr size_t kPiece = 256 * 1024;
constexpr std::string_view kBlocksMagic = "stoplog blocks 1\n";

std::array<unsigned char, 8> little_endian(uint64_t value) {
  std::array<unsigned char, 8> out;
  for (auto& byte : out) {
    byte = static_cast<unsigned char>(value & 0xff);
    value >>= 8;
  }
  return out;
}

bool all_zero(std::span<const std::byte> bytes) {
  // Comparing the block with itself shifted by one is one fast memcmp.
  return bytes.empty() ||
         (bytes[0] == std::byte{0} &&
          std::memcmp(bytes.data(), bytes.data() + 1, bytes.size() - 1) == 0);
}

std::span<const std::byte> zeros() {
  static const std::vector<std::byte> kZeros(kBlock);
  return kZeros;
}

}  // namespace

ContentHasher::ContentHasher(uint64_t size) : size_(size) {
  if (size_ <= kPlainLimit) return;
  hash_.update(kBlocksMagic);
  auto number = little_endian(size_);
  hash_.update(std::as_bytes(std::span(number)));
  block_.resize(kBlock);
}

void ContentHasher::plain_zeros(uint64_t count) {
  while (count > 0) {
    auto piece = zeros().first(std::min<uint64_t>(count, kBlock));
    hash_.update(piece);
    count -= piece.size();
  }
}

void ContentHasher::block(uint64_t number, std::span<const std::byte> bytes) {
  if (all_zero(bytes)) return;
  auto head = little_endian(number);
  hash_.update(std::as_bytes(std::span(head)));
  Sha256Digest digest = sha256(bytes);
  hash_.update(std::as_bytes(std::span(digest)));
}

void ContentHasher::flush() {
  if (block_used_ == 0) return;
  // A block is hashed whole, but for the file's last one.
  uint64_t start = block_number_ * kBlock;
  size_t length = std::min<uint64_t>(kBlock, size_ - start);
  std::memset(block_.data() + block_used_, 0, kBlock - block_used_);
  block(block_number_, std::span(block_).first(length));
  block_used_ = 0;
}

void ContentHasher::data(uint64_t offset, std::span<const std::byte> bytes) {
  if (size_ <= kPlainLimit) {
    plain_zeros(offset - at_);
    hash_.update(bytes);
    at_ = offset + bytes.size();
    return;
  }
  while (!bytes.empty()) {
    uint64_t number = offset / kBlock;
    size_t within = offset % kBlock;
    size_t take = std::min(bytes.size(), kBlock - within);
    if (number != block_number_) flush();
    if (take == kBlock) {
      block(number, bytes.first(take));
    } else {
      if (within > block_used_)
        std::memset(block_.data() + block_used_, 0, within - block_used_);
      std::memcpy(block_.data() + within, bytes.data(), take);
      block_used_ = within + take;
    }
    block_number_ = number;
    offset += take;
    bytes = bytes.subspan(take);
  }
  at_ = offset;
}

Sha256Digest ContentHasher::finish() {
  if (size_ <= kPlainLimit)
    plain_zeros(size_ - std::min(size_, at_));
  else
    flush();
  return hash_.finish();
}

Status for_each_piece(const fs::Content& content, const ContentSink& sink) {
  std::vector<std::byte> buffer;
  for (const auto& range : content.data()) {
    uint64_t done = 0;
    while (done < range.length) {
      size_t want = std::min<uint64_t>(kPiece, range.length - done);
      buffer.resize(std::max(buffer.size(), want));
      auto piece = std::span(buffer).first(want);
      size_t got = TRY(content.read(range.offset + done, piece));
      if (got != want)
        return std::unexpected(
            Error(Code::kDrift, "file is shorter than it was", EIO));
      TRY(sink(range.offset + done, piece));
      done += want;
    }
  }
  return {};
}

Result<Sha256Digest> content_digest(const fs::Content& content) {
  ContentHasher hasher(content.size());
  TRY(for_each_piece(content, [&](uint64_t offset, auto bytes) -> Status {
    hasher.data(offset, bytes);
    return {};
  }));
  return hasher.finish();
}

Result<size_t> OpenContent::read(uint64_t offset,
                                 std::span<std::byte> out) const {
  if (offset >= seen_.size) return size_t{0};
  size_t want = std::min<uint64_t>(out.size(), seen_.size - offset);
  size_t got = TRY(sys::pread_full(fd_, out.first(want), offset));
  sys::Stat now = TRY(sys::fstat(fd_));
  if (got != want || now.size != seen_.size ||
      now.mtime.tv_sec != seen_.mtime.tv_sec ||
      now.mtime.tv_nsec != seen_.mtime.tv_nsec)
    return std::unexpected(
        Error(Code::kDrift, "file changed while it was read", EIO));
  return got;
}

std::vector<fs::Content::Range> OpenContent::data() const {
  // Only a file with fewer blocks than bytes can have a hole: no seeking in
  // the common case.
  if (seen_.blocks * 512 >= seen_.size) return Content::data();
  std::vector<Range> ranges;
  off_t size = static_cast<off_t>(seen_.size);
  for (off_t at = 0; at < size;) {
    off_t start = ::lseek(fd_, at, SEEK_DATA);
    if (start < 0 && errno == ENXIO) break;
    if (start < 0) return Content::data();
    off_t end = ::lseek(fd_, start, SEEK_HOLE);
    if (end < 0) return Content::data();
    end = std::min(end, size);
    ranges.push_back(
        {static_cast<uint64_t>(start), static_cast<uint64_t>(end - start)});
    at = end;
  }
  return ranges;
}

namespace {

class FileContent : public OpenContent {
 public:
  FileContent(Fd fd, const sys::Stat& seen)
      : OpenContent(fd.get(), seen), owned_(std::move(fd)) {}

 private:
  Fd owned_;
};

class MemoryContent : public fs::Content {
 public:
  explicit MemoryContent(std::string bytes) : bytes_(std::move(bytes)) {}
  uint64_t size() const override { return bytes_.size(); }
  Result<size_t> read(uint64_t offset,
                      std::span<std::byte> out) const override {
    if (offset >= bytes_.size()) return size_t{0};
    size_t n = std::min<uint64_t>(out.size(), bytes_.size() - offset);
    std::memcpy(out.data(), bytes_.data() + offset, n);
    return n;
  }

 private:
  std::string bytes_;
};

}  // namespace

Result<std::shared_ptr<const fs::Content>> file_content(Fd fd) {
  sys::Stat seen = TRY(sys::fstat(fd.get()));
  if (!S_ISREG(seen.mode)) return fail(Code::kInvalid, "not a regular file");
  return std::make_shared<FileContent>(std::move(fd), seen);
}

std::shared_ptr<const fs::Content> memory_content(std::string bytes) {
  return std::make_shared<MemoryContent>(std::move(bytes));
}

}  // namespace stoplog::snapshot
