// SPDX-License-Identifier: Apache-2.0
// The SHA-256 that names a file's content: in approvals, commit records and
// the object store.
//
// Up to kPlainLimit bytes it is what sha256sum prints. Above, it is the SHA-256
// of a canonical form (docs/FORMAT.md, objects): the size, and number and
// SHA-256 of every 256 KiB block that is not all zero. A sparse file of 8 EiB,
// which costs an agent one truncate, then costs what its data costs. The form
// depends on the bytes alone, not on where the holes happen to be, and is the
// same that diff/content_hash.h computes.
//
//   ContentHasher h(size); h.data(offset, bytes)...; h.finish();
//   Sha256Digest d = TRY(content_digest(*content));
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "base/fd.h"
#include "base/hash.h"
#include "base/result.h"
#include "base/sys_file.h"
#include "fs/view.h"

namespace stoplog::snapshot {

inline constexpr uint64_t kPlainLimit = 64ull << 20;

class ContentHasher {
 public:
  explicit ContentHasher(uint64_t size);
  // Ascending, not overlapping; what lies between two calls is zero.
  void data(uint64_t offset, std::span<const std::byte> bytes);
  // Zeros up to the size are added by itself.
  Sha256Digest finish();

 private:
  void plain_zeros(uint64_t count);
  void block(uint64_t number, std::span<const std::byte> bytes);
  void flush();

  Sha256 hash_;
  uint64_t size_;
  uint64_t at_ = 0;
  std::vector<std::byte> block_;
  uint64_t block_number_ = 0;
  size_t block_used_ = 0;
};

using ContentSink =
    std::function<Status(uint64_t offset, std::span<const std::byte> bytes)>;
// Calls `sink` with the data of `content` in order, holes left out.
Status for_each_piece(const fs::Content& content, const ContentSink& sink);

Result<Sha256Digest> content_digest(const fs::Content& content);

// Content of a regular file that is open for as long as this is used, `seen`
// being its stat. What moves while it is read is told as below.
class OpenContent : public fs::Content {
 public:
  OpenContent(int fd, const sys::Stat& seen) : fd_(fd), seen_(seen) {}
  uint64_t size() const override { return seen_.size; }
  Result<size_t> read(uint64_t offset, std::span<std::byte> out) const override;
  std::vector<Range> data() const override;

 private:
  int fd_;
  sys::Stat seen_;
};

// Content of an open regular file, with its holes. A size or mtime that moves
// while it is read is Code::kDrift with EIO.
Result<std::shared_ptr<const fs::Content>> file_content(Fd fd);
std::shared_ptr<const fs::Content> memory_content(std::string bytes);

}  // namespace stoplog::snapshot
