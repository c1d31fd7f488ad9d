// SPDX-License-Identifier: Apache-2.0
#include "diff/hunks.h"

#ifdef __SSE2__
#include <emmintrin.h>
#endif

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "diff/git_library.h"
#include "diff/windows.h"

namespace stoplog::diff {
namespace {

int collect(const git_diff_delta*, const git_diff_hunk* hunk, void* out) {
  auto number = [](int n) { return static_cast<uint32_t>(n); };
  // A count of zero names the line before, counted from 1: the same number as
  // the line after, counted from 0.
  auto line = [&](int start, int count) {
    return number(count == 0 ? start : start - 1);
  };
  static_cast<std::vector<Edit>*>(out)->push_back(
      {.old_line = line(hunk->old_start, hunk->old_lines),
       .old_count = number(hunk->old_lines),
       .new_line = line(hunk->new_start, hunk->new_lines),
       .new_count = number(hunk->new_lines)});
  return 0;
}

// About three seconds of libgit2's time.
constexpr uint64_t kSearchCost = 400'000'000;

// Who only counts: `settled` becomes false when edits were found that a patch
// would place, or choose, otherwise.
struct Counting {
  bool& settled;
  SearchBudget* budget;
};

Status find_edits(TextDiff& diff, Window& w, const Counting* counting) {
  if (w.old_count == 0 || w.new_count == 0) {
    diff.edits.push_back({w.old_begin, w.old_count, w.new_begin, w.new_count});
    return {};
  }
  if (settle_parts(diff.old_lines, diff.new_lines, w)) {
    bool move = parts_can_move(diff.old_lines, diff.new_lines, w);
    if (!move || counting != nullptr) {
      if (move) counting->settled = false;
      diff.edits.insert(diff.edits.end(), w.parts.begin(), w.parts.end());
      return {};
    }
  } else if (counting != nullptr && counting->budget != nullptr &&
             !counting->budget->take(uint64_t{w.old_count} + w.new_count)) {
    counting->settled = false;
    diff.edits.insert(diff.edits.end(), w.parts.begin(), w.parts.end());
    return {};
  }
  TRY(start_libgit2());
  git_diff_options options;
  git_diff_options_init(&options, GIT_DIFF_OPTIONS_VERSION);
  options.flags = GIT_DIFF_FORCE_TEXT | GIT_DIFF_INDENT_HEURISTIC;
  options.context_lines = 0;
  options.interhunk_lines = 0;
  std::string_view a = diff.old_lines.range(w.old_begin, w.old_count);
  std::string_view b = diff.new_lines.range(w.new_begin, w.new_count);
  size_t first = diff.edits.size();
  int error = git_diff_buffers(a.data(), a.size(), nullptr, b.data(), b.size(),
                               nullptr, &options, nullptr, nullptr, collect,
                               nullptr, &diff.edits);
  if (error != 0)
    return fail(Code::kInternal, "cannot compare lines: {}", libgit2_error());
  for (size_t i = first; i < diff.edits.size(); i++) {
    diff.edits[i].old_line += w.old_begin;
    diff.edits[i].new_line += w.new_begin;
  }
  return {};
}

// All lines outside the edits must be the same on both sides. Cheap, and what
// a person approves then never rests on a library's word.
bool covers_all(const TextDiff& diff) {
  uint32_t old_at = 0, new_at = 0;
  auto same = [&](uint32_t old_end, uint32_t new_end) {
    return old_end >= old_at && new_end >= new_at &&
           old_end <= diff.old_lines.count() &&
           new_end <= diff.new_lines.count() &&
           diff.old_lines.range(old_at, old_end - old_at) ==
               diff.new_lines.range(new_at, new_end - new_at);
  };
  for (const Edit& e : diff.edits) {
    if (!same(e.old_line, e.new_line)) return false;
    old_at = e.old_line + e.old_count;
    new_at = e.new_line + e.new_count;
  }
  return same(diff.old_lines.count(), diff.new_lines.count());
}

bool starts_function(std::string_view line) {
  if (line.empty()) return false;
  unsigned char c = static_cast<unsigned char>(line[0]);
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' ||
         c == '$';
}

// The nearest line above `first` that looks like the head of a function: a
// letter, '_' or '$' in the first column, as git without a driver has it.
// `floor` is where the last search began: its answer serves when this finds
// none, which keeps the search linear over all hunks.
class FunctionFinder {
 public:
  explicit FunctionFinder(const Lines& lines) : lines_(lines) {}
  std::string before(uint32_t first) {
    for (uint32_t i = first; i > floor_; i--) {
      if (!starts_function(lines_[i - 1])) continue;
      std::string_view line = lines_[i - 1].substr(0, 80);
      while (!line.empty() && std::strchr(" \t\r\n\v\f", line.back()))
        line.remove_suffix(1);
      last_ = line;
      break;
    }
    floor_ = std::max(floor_, first);
    return last_;
  }

 private:
  const Lines& lines_;
  uint32_t floor_ = 0;
  std::string last_;
};

Hunk hunk_of(const TextDiff& diff, size_t first, size_t count,
             unsigned context) {
  const Edit& head = diff.edits[first];
  const Edit& tail = diff.edits[first + count - 1];
  uint32_t before = std::min<uint32_t>(context, head.old_line);
  uint32_t after = std::min<uint32_t>(
      context, diff.old_lines.count() - tail.old_line - tail.old_count);
  uint32_t old_begin = head.old_line - before;
  uint32_t new_begin = head.new_line - before;
  Hunk hunk;
  hunk.first_edit = first;
  hunk.edit_count = count;
  hunk.old_lines = tail.old_line + tail.old_count + after - old_begin;
  hunk.new_lines = tail.new_line + tail.new_count + after - new_begin;
  hunk.old_start = old_begin + (hunk.old_lines > 0);
  hunk.new_start = new_begin + (hunk.new_lines > 0);
  uint32_t at = old_begin;
  for (size_t i = first; i < first + count; i++) {
    const Edit& e = diff.edits[i];
    for (; at < e.old_line; at++)
      hunk.lines.push_back({' ', diff.old_lines[at]});
    for (; at < e.old_line + e.old_count; at++)
      hunk.lines.push_back({'-', diff.old_lines[at]});
    for (uint32_t n = 0; n < e.new_count; n++)
      hunk.lines.push_back({'+', diff.new_lines[e.new_line + n]});
  }
  for (; at < old_begin + hunk.old_lines; at++)
    hunk.lines.push_back({' ', diff.old_lines[at]});
  return hunk;
}

// Bit i is set when byte i of the 64 at `at` is a newline.
uint64_t newlines_of_64(const char* at) {
  uint64_t found = 0;
#ifdef __SSE2__
  const __m128i newline = _mm_set1_epi8('\n');
  for (int i = 0; i < 4; i++) {
    __m128i bytes;
    std::memcpy(&bytes, at + 16 * i, 16);
    auto mask = static_cast<uint32_t>(
        _mm_movemask_epi8(_mm_cmpeq_epi8(bytes, newline)));
    found |= static_cast<uint64_t>(mask) << (16 * i);
  }
#else
  for (int i = 0; i < 64; i++)
    found |= static_cast<uint64_t>(at[i] == '\n') << i;
#endif
  return found;
}

// Source lines are too short for a call of memchr each, which was an eighth of
// all the work for a patch.
template <typename Visit>
void for_each_newline(std::string_view text, const Visit& visit) {
  size_t at = 0;
  for (; at + 64 <= text.size(); at += 64)
    for (uint64_t found = newlines_of_64(text.data() + at); found != 0;
         found &= found - 1)
      visit(at + static_cast<size_t>(std::countr_zero(found)));
  for (; at < text.size(); at++)
    if (text[at] == '\n') visit(at);
}

}  // namespace

Lines::Lines(SharedText text) : text_(std::move(text)) {
  const std::string& s = *text_;
  begins_.reserve(2 + s.size() / 32);
  begins_.push_back(0);
  for_each_newline(
      s, [&](size_t at) { begins_.push_back(static_cast<uint32_t>(at + 1)); });
  if (begins_.back() != s.size())
    begins_.push_back(static_cast<uint32_t>(s.size()));
}

uint32_t Lines::lines_within(size_t bytes) const {
  auto it = std::upper_bound(begins_.begin(), begins_.end(), bytes);
  return static_cast<uint32_t>(it - begins_.begin()) - 1;
}

uint32_t Lines::first_from(size_t byte) const {
  auto it = std::lower_bound(begins_.begin(), begins_.end(), byte);
  return static_cast<uint32_t>(it - begins_.begin());
}

uint64_t TextDiff::lines_added() const {
  uint64_t sum = 0;
  for (const Edit& e : edits) sum += e.new_count;
  return sum;
}

uint64_t TextDiff::lines_deleted() const {
  uint64_t sum = 0;
  for (const Edit& e : edits) sum += e.old_count;
  return sum;
}

namespace {

Result<TextDiff> compare(SharedText old_text, SharedText new_text,
                         const std::vector<Edit>* known,
                         const Counting* counting) {
  if (old_text->size() > kTextLimit || new_text->size() > kTextLimit)
    return fail_errno(EFBIG, "larger than {} bytes", kTextLimit);
  TextDiff diff{Lines(std::move(old_text)), Lines(std::move(new_text)), {}};
  if (known != nullptr) {
    diff.edits = *known;
    if (covers_all(diff)) return diff;
    diff.edits.clear();
  }
  // libgit2 hashes each line that it is given, and the whole with SHA-1: it
  // gets the windows around differences only.
  for (Window& w : find_windows(diff.old_lines, diff.new_lines)) {
    if (w.old_count > kLineLimit || w.new_count > kLineLimit)
      return fail_errno(EFBIG, "more than {} lines", kLineLimit);
    TRY(find_edits(diff, w, counting));
  }
  if (!covers_all(diff))
    return fail(Code::kInternal, "the line differences do not add up");
  return diff;
}

}  // namespace

Result<TextDiff> diff_texts(SharedText old_text, SharedText new_text,
                            const std::vector<Edit>* known) {
  return compare(std::move(old_text), std::move(new_text), known, nullptr);
}

Result<TextDiff> count_texts(SharedText old_text, SharedText new_text,
                             bool& settled, SearchBudget* budget) {
  settled = true;
  const Counting counting{.settled = settled, .budget = budget};
  return compare(std::move(old_text), std::move(new_text), nullptr, &counting);
}

// What it costs grows faster than the lines: with the square of what differs,
// up to a bound of the library's own.
bool SearchBudget::take(uint64_t lines) {
  const auto cost = lines * static_cast<uint64_t>(std::sqrt(lines));
  return used_.fetch_add(cost, std::memory_order_relaxed) + cost <= kSearchCost;
}

Result<TextDiff> diff_texts(std::string old_text, std::string new_text) {
  return diff_texts(std::make_shared<const std::string>(std::move(old_text)),
                    std::make_shared<const std::string>(std::move(new_text)));
}

std::vector<Hunk> make_hunks(const TextDiff& diff, unsigned context) {
  std::vector<Hunk> hunks;
  FunctionFinder functions(diff.old_lines);
  // More context than any text has lines; keeps the sums below from wrapping.
  context = std::min(context, 1u << 24);
  for (size_t i = 0; i < diff.edits.size();) {
    size_t end = i + 1;
    while (end < diff.edits.size() && diff.edits[end].old_line -
                                              diff.edits[end - 1].old_line -
                                              diff.edits[end - 1].old_count <=
                                          2 * context)
      end++;
    hunks.push_back(hunk_of(diff, i, end - i, context));
    Hunk& hunk = hunks.back();
    hunk.header = functions.before(hunk.old_start - (hunk.old_lines > 0));
    i = end;
  }
  return hunks;
}

std::vector<Hunk> split_hunk(const TextDiff& diff, const Hunk& hunk,
                             unsigned context) {
  std::vector<Hunk> out;
  for (size_t i = 0; i < hunk.edit_count; i++) {
    // Context stops at the neighbouring edits, whose lines are not settled.
    size_t edit = hunk.first_edit + i;
    uint32_t room = context;
    if (i > 0) {
      const Edit& last = diff.edits[edit - 1];
      room = std::min(
          room, diff.edits[edit].old_line - last.old_line - last.old_count);
    }
    if (i + 1 < hunk.edit_count) {
      const Edit& e = diff.edits[edit];
      room = std::min(room,
                      diff.edits[edit + 1].old_line - e.old_line - e.old_count);
    }
    out.push_back(hunk_of(diff, edit, 1, room));
    out.back().header = hunk.header;
  }
  return out;
}

Result<std::string> apply_edits(const TextDiff& diff,
                                std::span<const size_t> chosen) {
  std::vector<bool> take(diff.edits.size());
  for (size_t i : chosen) {
    if (i >= take.size()) return fail(Code::kInvalid, "there is no edit {}", i);
    take[i] = true;
  }
  std::string out;
  out.reserve(
      std::max(diff.old_lines.text().size(), diff.new_lines.text().size()));
  uint32_t at = 0;
  for (size_t i = 0; i < diff.edits.size(); i++) {
    if (!take[i]) continue;
    const Edit& e = diff.edits[i];
    out += diff.old_lines.range(at, e.old_line - at);
    out += diff.new_lines.range(e.new_line, e.new_count);
    at = e.old_line + e.old_count;
  }
  out += diff.old_lines.range(at, diff.old_lines.count() - at);
  return out;
}

Sha256Digest edit_digest(const TextDiff& diff, size_t edit) {
  const Edit& e = diff.edits[edit];
  Sha256 hash;
  hash.update(fmt::format("stoplog edit 1\n{} {} {}\n", e.old_line, e.old_count,
                          e.new_count));
  hash.update(diff.old_lines.range(e.old_line, e.old_count));
  hash.update("\n+\n");
  hash.update(diff.new_lines.range(e.new_line, e.new_count));
  return hash.finish();
}

}  // namespace stoplog::diff
