// SPDX-License-Identifier: Apache-2.0
// Hashes of a file's content, and its comparison, streamed.
//
// Up to kPlainLimit bytes a hash is the plain hash of the bytes (sha256sum
// gives the same). Beyond, it is the hash of a list of the blocks that are not
// all zero (docs/FORMAT.md, "diff"): it depends on the bytes alone, not on how
// they are stored, and a sparse file of a terabyte costs what its data costs.
//
// Free functions without state, usable from any thread; 256 KiB of memory.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "base/hash.h"
#include "base/result.h"
#include "fs/view.h"

namespace stoplog::diff {

inline constexpr uint64_t kPlainLimit = 64ull << 20;
inline constexpr uint64_t kHashBlock = 256ull << 10;

struct ContentHash {
  Hash128 xxh3;
  Sha256Digest sha256{};
};

// One pass for both.
Result<ContentHash> hash_content(const fs::Content& content);
Result<Sha256Digest> content_sha256(const fs::Content& content);
// The hash of a symlink's target, or of any text that fits in memory.
ContentHash hash_text(std::string_view text);

// True when both have the same bytes. Sizes first, then data; ranges that are
// holes on both sides are not read.
Result<bool> same_content(const fs::Content& a, const fs::Content& b);

// Git's name of a blob: SHA-1 of "blob SIZE\0" and the bytes.
using GitId = std::array<unsigned char, 20>;
Result<GitId> git_blob_id(const fs::Content& content);
GitId git_blob_id(std::string_view text);

// The whole content, refused with EFBIG when larger than `limit`.
Result<std::string> read_content(const fs::Content& content, uint64_t limit);

}  // namespace stoplog::diff
