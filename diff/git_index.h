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
// borrows. Code::kInvalid for what is no index. Of a split index it has only
// the entries in this file: IndexEntries (diff/git_split_index.h) has them all.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/hash.h"
#include "base/result.h"
#include "diff/content_hash.h"

namespace stoplog::diff {

inline constexpr uint64_t kIndexLimit = 64ull << 20;  // half a million entries

// Names, all together: with shared prefixes a million of them can be as long as
// 64 GB.
inline constexpr uint64_t kIndexNames = 256ull << 20;

enum class ObjectFormat { kSha1, kSha256 };
size_t id_size(ObjectFormat format);  // 20 or 32 bytes
// As a repository's config says it; SHA-1 when it says nothing.
ObjectFormat object_format(std::string_view config);

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
  // In a split index entries may lack their names, and kMust refuses it.
  enum class Names { kMust, kMayLack };
  static Result<IndexReader> open(std::string_view bytes, ObjectFormat format,
                                  Names names = Names::kMust);
  Result<std::optional<IndexEntry>> next();
  uint32_t count() const { return count_; }
  // Where the entries end; known at the end.
  size_t entries_end() const { return entries_end_; }
  // What makes it a split one: the extension's bytes; known at the end.
  std::optional<std::string_view> link() const { return link_; }

 private:
  IndexReader(std::string_view bytes, size_t id_size, unsigned version,
              uint32_t count, Names names)
      : bytes_(bytes),
        id_size_(id_size),
        version_(version),
        count_(count),
        left_(count),
        names_(names) {}
  Result<std::string> take_path(size_t entry_start);
  Status check_extensions();

  std::string_view bytes_;
  size_t id_size_;
  unsigned version_;
  uint32_t count_, left_;
  Names names_;
  std::optional<std::string_view> link_;
  size_t at_ = 12;
  size_t entries_end_ = 0;
  std::string last_;  // version 4 shares prefixes
  uint64_t names_left_ = kIndexNames;
};

// The same index with its entries and what is needed to read them (a split or a
// sparse one), and nothing that git would believe without a look: names of
// trees, which the next `git commit` takes for those of the entries, and what a
// monitor is said to have seen. With a new checksum.
Result<std::string> index_without_extras(std::string_view bytes,
                                         ObjectFormat format);

}  // namespace stoplog::diff
