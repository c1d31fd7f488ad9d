// SPDX-License-Identifier: Apache-2.0
// A bounded reader of git's index file, versions 2 to 4, for a file that an
// agent wrote. Entries one by one, in the file's order; only what has meaning
// (path, mode, id, stage, flags), never the stat data that every `git status`
// rewrites.
//
//   IndexReader reader = TRY(IndexReader::open(bytes, ObjectFormat::kSha1));
//   while (auto entry = TRY(reader.next())) ...
//
// Which format it has is the repository's to say (extensions.objectformat): an
// index can be made to pass for either. A sparse index has whole directories as
// entries, and is compared as such. Reads no byte outside of `bytes`, which it
// borrows. Code::kInvalid for what is no index; Code::kUnsupported for a split
// one, whose entries are in another file.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/hash.h"
#include "base/result.h"
#include "diff/content_hash.h"

namespace stoplog::diff {

inline constexpr uint64_t kIndexLimit = 64ull << 20;  // half a million entries

enum class ObjectFormat { kSha1, kSha256 };

struct IndexEntry {
  std::string path;
  uint32_t mode = 0;
  std::string id;  // raw, 20 or 32 bytes
  unsigned stage = 0;
  // assume-valid, skip-worktree and intent-to-add hide or change what git
  // sees; the rest of the flags is bookkeeping.
  bool assume_valid = false, skip_worktree = false, intent_to_add = false;
  bool operator==(const IndexEntry&) const = default;
};

class IndexReader {
 public:
  static Result<IndexReader> open(std::string_view bytes, ObjectFormat format);
  Result<std::optional<IndexEntry>> next();

 private:
  IndexReader(std::string_view bytes, size_t id_size, unsigned version,
              uint32_t count)
      : bytes_(bytes), id_size_(id_size), version_(version), left_(count) {}
  Result<std::string> take_path(size_t entry_start);
  Status check_extensions();

  std::string_view bytes_;
  size_t id_size_;
  unsigned version_;
  uint32_t left_;
  size_t at_ = 12;
  std::string last_;  // version 4 shares prefixes
};

// What happened between two indexes; an empty text is an absent one.
struct IndexDelta {
  uint64_t added = 0, modified = 0, removed = 0;
  Sha256Digest meaning{};  // of the new side's entries
  bool any() const { return added + modified + removed > 0; }
};
Result<IndexDelta> compare_indexes(std::string_view before,
                                   std::string_view after,
                                   ObjectFormat format = ObjectFormat::kSha1);

}  // namespace stoplog::diff
