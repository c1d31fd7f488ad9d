// SPDX-License-Identifier: Apache-2.0
#include "diff/windows.h"

#include <algorithm>
#include <optional>
#include <utility>

namespace stoplog::diff {
namespace {

// Common lines that stay on either side of a difference, so that an edit can
// still be slid to where a reader expects it.
constexpr uint32_t kKeep = 30;
// A common run of this length ends a window.
constexpr uint32_t kRun = 2 * kKeep + 4;
// A common run of this length is believed while looking for a longer one.
constexpr uint32_t kStep = 4;
// How many lines, of both sides together, are skipped in search of a run.
constexpr uint32_t kReach = 64;
// How many comparisons of two lines are worth sparing the line differ.
constexpr uint64_t kComparisons = 1024;

class Finder {
 public:
  Finder(const Lines& a, const Lines& b) : a_(a), b_(b) {}

  std::vector<Window> run() {
    cut_ends();
    uint32_t i = head_, j = head_;
    while (i < end_a_ || j < end_b_) {
      Window window{i, 0, j, 0, {}};
      bool ended = false;
      while (!ended) ended = skip_difference(i, j, window.parts);
      window.old_count = i - window.old_begin;
      window.new_count = j - window.new_begin;
      windows_.push_back(std::move(window));
      while (i < end_a_ && j < end_b_ && a_[i] == b_[j]) i++, j++;
    }
    widen();
    return std::move(windows_);
  }

 private:
  void cut_ends() {
    std::string_view x = a_.text(), y = b_.text();
    size_t shorter = std::min(x.size(), y.size());
    auto from = [&](size_t n) { return static_cast<long>(n); };
    size_t head = static_cast<size_t>(
        std::mismatch(x.begin(), x.begin() + from(shorter), y.begin()).first -
        x.begin());
    size_t tail = static_cast<size_t>(
        std::mismatch(x.rbegin(), x.rbegin() + from(shorter - head), y.rbegin())
            .first -
        x.rbegin());
    // Whole lines only: those that end within the head, begin within the tail.
    head_ = std::min(a_.lines_within(head), b_.lines_within(head));
    uint32_t lines = std::min(a_.count() - a_.first_from(x.size() - tail),
                              b_.count() - b_.first_from(y.size() - tail));
    lines = std::min(lines, std::min(a_.count(), b_.count()) - head_);
    end_a_ = a_.count() - lines;
    end_b_ = b_.count() - lines;
  }

  uint32_t run_at(uint32_t i, uint32_t j) const {
    uint32_t n = 0;
    while (n < kRun && i + n < end_a_ && j + n < end_b_ &&
           a_[i + n] == b_[j + n])
      n++;
    return n;
  }

  // Moves i and j past lines that differ to the nearest run. True when the
  // window ends there; false when it goes on after a short run.
  bool skip_difference(uint32_t& i, uint32_t& j,
                       std::vector<Edit>& parts) const {
    for (uint32_t s = 1; s <= kReach; s++) {
      for (uint32_t di = 0; di <= s; di++) {
        uint32_t x = i + di, y = j + (s - di);
        if (x > end_a_ || y > end_b_) continue;
        uint32_t run = run_at(x, y);
        bool to_end = x + run == end_a_ && y + run == end_b_;
        if (run < kStep && !to_end) continue;
        parts.push_back({i, x - i, j, y - j});
        bool ends = run >= kRun;
        i = ends ? x : x + run;
        j = ends ? y : y + run;
        return ends || to_end;
      }
    }
    parts.push_back({i, end_a_ - i, j, end_b_ - j});
    i = end_a_;
    j = end_b_;
    return true;
  }

  void widen() {
    uint32_t last_a = 0, last_b = 0;
    for (size_t k = 0; k < windows_.size(); k++) {
      Window& w = windows_[k];
      uint32_t before =
          std::min({kKeep, w.old_begin - last_a, w.new_begin - last_b});
      bool last = k + 1 == windows_.size();
      uint32_t next_a = last ? a_.count() : windows_[k + 1].old_begin - kKeep;
      uint32_t next_b = last ? b_.count() : windows_[k + 1].new_begin - kKeep;
      uint32_t after = std::min({kKeep, next_a - w.old_begin - w.old_count,
                                 next_b - w.new_begin - w.new_count});
      w.old_begin -= before;
      w.new_begin -= before;
      w.old_count += before + after;
      w.new_count += before + after;
      last_a = w.old_begin + w.old_count;
      last_b = w.new_begin + w.new_count;
    }
  }

  const Lines& a_;
  const Lines& b_;
  uint32_t head_ = 0, end_a_ = 0, end_b_ = 0;
  std::vector<Window> windows_;
};

bool is_single(const Lines& lines, uint32_t begin, uint32_t count,
               std::string_view line) {
  uint32_t found = 0;
  for (uint32_t i = begin; i < begin + count; i++) found += lines[i] == line;
  return found == 1;
}

// What goes and comes from `from` up to, without, a line of each side.
void add_part(const Edit& from, uint32_t old_line, uint32_t new_line,
              std::vector<Edit>& out) {
  Edit part{from.old_line, old_line - from.old_line, from.new_line,
            new_line - from.new_line};
  if (part.old_count + part.new_count > 0) out.push_back(part);
}

// Whether lines could as well be marked one further up or down.
bool can_move(const Lines& lines, uint32_t begin, uint32_t count) {
  if (count == 0) return false;
  uint32_t end = begin + count;
  return (begin > 0 && lines[begin - 1] == lines[end - 1]) ||
         (end < lines.count() && lines[begin] == lines[end]);
}

}  // namespace

std::vector<Window> find_windows(const Lines& a, const Lines& b) {
  if (a.text() == b.text()) return {};
  return Finder(a, b).run();
}

bool settle_parts(const Lines& a, const Lines& b, Window& window) {
  uint64_t gone = 0, come = 0;
  for (const Edit& part : window.parts) {
    gone += part.old_count;
    come += part.new_count;
  }
  if (gone * come > kComparisons) return false;
  // Nothing to compare with; there may be 40,000 parts.
  if (gone * come == 0) return true;
  std::vector<Edit> settled;
  for (const Edit& x : window.parts) {
    Edit rest = x;  // begins after the last line that is kept
    for (uint32_t i = x.old_line; i < x.old_line + x.old_count; i++) {
      std::optional<uint32_t> same;
      for (const Edit& y : window.parts)
        for (uint32_t j = y.new_line; j < y.new_line + y.new_count; j++) {
          if (a[i] != b[j]) continue;
          // In another order, or in two places: there is more than one answer.
          if (same || &y != &x || j < rest.new_line) return false;
          same = j;
        }
      if (!same) continue;
      if (!is_single(a, window.old_begin, window.old_count, a[i]) ||
          !is_single(b, window.new_begin, window.new_count, a[i]))
        return false;
      add_part(rest, i, *same, settled);
      rest.old_line = i + 1;
      rest.new_line = *same + 1;
    }
    add_part(rest, x.old_line + x.old_count, x.new_line + x.new_count, settled);
  }
  window.parts = std::move(settled);
  return true;
}

bool parts_can_move(const Lines& a, const Lines& b, const Window& window) {
  return std::any_of(window.parts.begin(), window.parts.end(),
                     [&](const Edit& part) {
                       return can_move(a, part.old_line, part.old_count) ||
                              can_move(b, part.new_line, part.new_count);
                     });
}

}  // namespace stoplog::diff
