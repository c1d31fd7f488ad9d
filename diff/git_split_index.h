// SPDX-License-Identifier: Apache-2.0
// The entries of an index, whole or split: a split one (`git update-index
// --split-index`) has only what differs from a shared one, which lies beside it
// as sharedindex.<id>.
//
//   IndexEntries entries = TRY(IndexEntries::open({bytes, shared}, format));
//   while (auto entry = TRY(entries.next())) ...
//
// Both files are hostile: bitmaps that reach beyond the shared entries, names
// where there may be none, and a shared file that is not the one named are
// Code::kInvalid. Borrows the bytes; owns the shared ones. One thread.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "diff/git_index.h"

namespace stoplog::diff {

// Reads "sharedindex.<id>" of the same git directory.
using SharedIndex = std::function<Result<std::string>(const std::string&)>;

struct IndexText {
  std::string_view bytes;  // empty: there is no index
  SharedIndex shared;      // unset: a split index is refused
};

class IndexEntries {
 public:
  static Result<IndexEntries> open(const IndexText& text, ObjectFormat format);
  Result<std::optional<IndexEntry>> next();

 private:
  // What stands for a split index; on the heap, since readers point into it.
  struct Split {
    std::string bytes;  // of the shared index
    std::vector<bool> deleted, replaced;
    std::optional<IndexReader> shared, replacing, adding;
    size_t at = 0;  // of the next shared entry
    std::optional<IndexEntry> next_shared, next_added;
  };
  static Result<std::unique_ptr<Split>> open_split(const IndexText& text,
                                                   std::string_view link,
                                                   ObjectFormat format);
  static Status next_shared(Split& split);
  static Status next_added(Split& split);

  std::optional<IndexReader> plain_;
  std::unique_ptr<Split> split_;
};

// What happened between two indexes.
struct IndexDelta {
  uint64_t added = 0, modified = 0, removed = 0;
  Sha256Digest meaning{};  // of the new side's entries
  // Paths that became assume-unchanged or skip-worktree, and the first.
  uint64_t hidden = 0;
  std::string first_hidden;
  bool any() const { return added + modified + removed > 0; }
};
// Each entry that differs, on the side or sides that have it.
using EachDifference =
    std::function<void(const IndexEntry* before, const IndexEntry* after)>;
Result<IndexDelta> compare_indexes(const IndexText& before,
                                   const IndexText& after,
                                   ObjectFormat format = ObjectFormat::kSha1,
                                   const EachDifference& each = {});

}  // namespace stoplog::diff
