// SPDX-License-Identifier: Apache-2.0
// Line differences of two texts: edits, hunks made of them, and the exact
// application of some of them.
//
//   TextDiff diff = TRY(diff_texts(old_text, new_text));
//   for (const Hunk& hunk : make_hunks(diff, 3)) ...
//   std::string merged = apply_edits(diff, {0, 2});   // edits 0 and 2 only
//
// An *edit* is the smallest unit: some lines of the old text replaced by some
// of the new; it has no context and does not depend on -U. A *hunk* is a run
// of edits whose contexts meet. Splitting a hunk is taking its edits one by
// one, so approving hunks is choosing edits: apply_edits() with all gives the
// new text byte for byte, with none the old.
//
// libgit2's buffer API finds the edits, but where nothing that goes comes again
// and no edit could lie elsewhere (diff/windows.h): there is one answer then.
// It sees two buffers and nothing else: no repository, no configuration.
// Bounds: kTextLimit and kLineLimit after common head and tail are cut off;
// beyond them diff_texts() fails with EFBIG. Thread-safe.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/hash.h"
#include "base/result.h"

namespace stoplog::diff {

inline constexpr uint64_t kTextLimit = 8ull << 20;  // two 190 MB took 5.9 GB
inline constexpr uint64_t kLineLimit = 200'000;

// Lines are counted from 0. A count of 0 on the old side is an insertion
// before `old_line`, on the new side a deletion.
struct Edit {
  uint32_t old_line = 0, old_count = 0;
  uint32_t new_line = 0, new_count = 0;
  bool operator==(const Edit&) const = default;
};

using SharedText = std::shared_ptr<const std::string>;

// Where the lines of a text begin. A last line without newline is a line.
class Lines {
 public:
  explicit Lines(SharedText text);
  uint32_t count() const { return static_cast<uint32_t>(begins_.size() - 1); }
  std::string_view operator[](uint32_t i) const {  // with its newline
    return std::string_view(*text_).substr(begins_[i],
                                           begins_[i + 1] - begins_[i]);
  }
  std::string_view range(uint32_t first, uint32_t count) const {
    return std::string_view(*text_).substr(
        begins_[first], begins_[first + count] - begins_[first]);
  }
  const std::string& text() const { return *text_; }
  // How many whole lines lie in the first `bytes`, and the first line that
  // begins at `byte` or after.
  uint32_t lines_within(size_t bytes) const;
  uint32_t first_from(size_t byte) const;

 private:
  SharedText text_;
  std::vector<uint32_t> begins_;  // one more than there are lines
};

struct TextDiff {
  Lines old_lines;
  Lines new_lines;
  std::vector<Edit> edits;  // in order, never touching
  uint64_t lines_added() const;
  uint64_t lines_deleted() const;
};

Result<TextDiff> diff_texts(std::string old_text, std::string new_text);
// `known` are the edits that an earlier call found for the same two texts: they
// are checked, and found anew when they do not fit.
Result<TextDiff> diff_texts(SharedText old_text, SharedText new_text,
                            const std::vector<Edit>* known = nullptr);
// What looking for the fewest lines may cost, over all texts that share it: a
// text of 400 KB can take a second, and an agent can write thousands of them.
// Any thread.
class SearchBudget {
 public:
  // False when it is used up.
  bool take(uint64_t lines);

 private:
  std::atomic<uint64_t> used_ = 0;
};

// The same lines in number, for counting and for looking at what comes: where
// an edit could as well stand a line further up or down, it may stand there,
// and `settled` is false; so it is beyond `budget`, where what lies between
// common lines counts as changed. Needs libgit2 less often.
Result<TextDiff> count_texts(SharedText old_text, SharedText new_text,
                             bool& settled, SearchBudget* budget = nullptr);

struct Line {
  char origin = ' ';      // ' ', '-', '+'
  std::string_view text;  // into the TextDiff; with its newline if it has one
};

struct Hunk {
  // As in "@@ -old_start,old_lines +new_start,new_lines @@ header": from 1,
  // and for a count of 0 the line before.
  uint32_t old_start = 0, old_lines = 0;
  uint32_t new_start = 0, new_lines = 0;
  std::string header;  // the enclosing function's line, at most 80 bytes
  std::vector<Line> lines;
  size_t first_edit = 0, edit_count = 0;  // of TextDiff::edits
};

// Views into `diff`, which must outlive them.
std::vector<Hunk> make_hunks(const TextDiff& diff, unsigned context);
// The hunk as one hunk for each of its edits; one element when it cannot be
// split.
std::vector<Hunk> split_hunk(const TextDiff& diff, const Hunk& hunk,
                             unsigned context);

// The old text with the chosen edits (indices, in any order) applied.
Result<std::string> apply_edits(const TextDiff& diff,
                                std::span<const size_t> chosen);
// Names one edit by what it does and where: what an approval of a part is
// bound by. Independent of context and of other edits' new lines.
Sha256Digest edit_digest(const TextDiff& diff, size_t edit);

}  // namespace stoplog::diff
