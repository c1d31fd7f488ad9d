// SPDX-License-Identifier: Apache-2.0
#include "diff/content_hash.h"

// As in base/hash.cc: the EVP calls would load providers at their first use.
#define OPENSSL_SUPPRESS_DEPRECATED
#include <openssl/sha.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <vector>

#include "base/hash_speed.h"

namespace stoplog::diff {
namespace {

using Range = fs::Content::Range;

std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text));
}

bool all_zero(std::span<const std::byte> data) {
  return data.empty() ||
         (data[0] == std::byte{0} &&
          std::memcmp(data.data(), data.data() + 1, data.size() - 1) == 0);
}

Status read_exactly(const fs::Content& content, uint64_t offset,
                    std::span<std::byte> out) {
  size_t got = TRY(content.read(offset, out));
  if (got != out.size())
    return fail(Code::kDrift, "a file became shorter while it was read");
  return {};
}

using Visit = std::function<void(uint64_t, std::span<const std::byte>)>;

// Every byte, in order.
Status each_piece(const fs::Content& content, const Visit& visit) {
  std::vector<std::byte> buffer(std::min(kHashBlock, content.size()));
  for (uint64_t at = 0; at < content.size(); at += buffer.size()) {
    auto piece = std::span(buffer).first(static_cast<size_t>(
        std::min<uint64_t>(buffer.size(), content.size() - at)));
    TRY(read_exactly(content, at, piece));
    visit(at, piece);
  }
  return {};
}

// The blocks that hold data, by number, each once; `visit` gets the number.
Status each_block(const fs::Content& content, std::vector<Range> ranges,
                  const Visit& visit) {
  std::vector<std::byte> buffer(kHashBlock);
  uint64_t next = 0;
  for (const Range& range : ranges) {
    if (range.length == 0 || range.offset >= content.size()) continue;
    uint64_t end =
        range.offset + std::min(range.length, content.size() - range.offset);
    uint64_t block = std::max(next, range.offset / kHashBlock);
    for (; block * kHashBlock < end; block++) {
      uint64_t at = block * kHashBlock;
      auto piece = std::span(buffer).first(static_cast<size_t>(
          std::min<uint64_t>(kHashBlock, content.size() - at)));
      TRY(read_exactly(content, at, piece));
      if (!all_zero(piece)) visit(block, piece);
    }
    next = block;
  }
  return {};
}

void put_number(std::string& out, uint64_t value) {
  for (int i = 0; i < 8; i++) out += static_cast<char>(value >> (8 * i));
}

std::string block_preamble(uint64_t size) {
  std::string out = "stoplog blocks 1\n";
  put_number(out, size);
  return out;
}

// Ranges of either, merged and in order.
std::vector<Range> data_of_either(const fs::Content& a, const fs::Content& b) {
  std::vector<Range> all = a.data();
  std::vector<Range> more = b.data();
  all.insert(all.end(), more.begin(), more.end());
  std::sort(all.begin(), all.end(),
            [](const Range& x, const Range& y) { return x.offset < y.offset; });
  return all;
}

}  // namespace

ContentHash hash_text(std::string_view text) {
  return {.xxh3 = xxh3(bytes_of(text)), .sha256 = sha256(text)};
}

Result<ContentHash> hash_content(const fs::Content& content) {
  Xxh3 fast;
  Sha256 strong;
  if (content.size() <= kPlainLimit) {
    TRY(each_piece(content, [&](uint64_t, std::span<const std::byte> piece) {
      fast.update(piece);
      strong.update(piece);
    }));
    return ContentHash{.xxh3 = fast.finish(), .sha256 = strong.finish()};
  }
  std::string preamble = block_preamble(content.size());
  fast.update(bytes_of(preamble));
  strong.update(preamble);
  TRY(each_block(content, content.data(),
                 [&](uint64_t block, std::span<const std::byte> piece) {
                   std::string record;
                   put_number(record, block);
                   strong.update(record);
                   Sha256Digest digest = sha256(piece);
                   strong.update(std::as_bytes(std::span(digest)));
                   Hash128 hash = xxh3(piece);
                   put_number(record, hash.high);
                   put_number(record, hash.low);
                   fast.update(bytes_of(record));
                 }));
  return ContentHash{.xxh3 = fast.finish(), .sha256 = strong.finish()};
}

Result<Sha256Digest> content_sha256(const fs::Content& content) {
  return TRY(hash_content(content)).sha256;
}

Result<bool> same_content(const fs::Content& a, const fs::Content& b) {
  if (&a == &b) return true;
  if (a.size() != b.size()) return false;
  std::vector<std::byte> left(std::min(kHashBlock, a.size()));
  std::vector<std::byte> right(left.size());
  uint64_t next = 0;
  for (const Range& range : data_of_either(a, b)) {
    if (range.length == 0 || range.offset >= a.size()) continue;
    uint64_t end =
        range.offset + std::min(range.length, a.size() - range.offset);
    for (uint64_t at = std::max(next, range.offset); at < end;) {
      size_t length =
          static_cast<size_t>(std::min<uint64_t>(left.size(), end - at));
      TRY(read_exactly(a, at, std::span(left).first(length)));
      TRY(read_exactly(b, at, std::span(right).first(length)));
      if (std::memcmp(left.data(), right.data(), length) != 0) return false;
      at += length;
    }
    next = std::max(next, end);
  }
  return true;
}

Result<GitId> git_blob_id(const fs::Content& content) {
  use_fast_hashing();
  SHA_CTX context;
  SHA1_Init(&context);
  std::string head = fmt::format("blob {}", content.size());
  SHA1_Update(&context, head.c_str(), head.size() + 1);
  TRY(each_piece(content, [&](uint64_t, std::span<const std::byte> piece) {
    SHA1_Update(&context, piece.data(), piece.size());
  }));
  GitId id;
  SHA1_Final(id.data(), &context);
  return id;
}

GitId git_blob_id(std::string_view text) {
  use_fast_hashing();
  SHA_CTX context;
  SHA1_Init(&context);
  std::string head = fmt::format("blob {}", text.size());
  SHA1_Update(&context, head.c_str(), head.size() + 1);
  SHA1_Update(&context, text.data(), text.size());
  GitId id;
  SHA1_Final(id.data(), &context);
  return id;
}

Result<std::string> read_content(const fs::Content& content, uint64_t limit) {
  if (content.size() > limit)
    return fail_errno(EFBIG, "larger than {} bytes", limit);
  std::string text(static_cast<size_t>(content.size()), '\0');
  TRY(read_exactly(content, 0, std::as_writable_bytes(std::span(text))));
  return text;
}

}  // namespace stoplog::diff
