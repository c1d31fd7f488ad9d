// SPDX-License-Identifier: Apache-2.0
#include "cli/review_words.h"

#include <algorithm>

#include "base/escape.h"

namespace stoplog::cli {
namespace {

// Lines of a block on one side: nobody compares a hundred lines word by word,
// and every row that is painted looks at its block.
constexpr size_t kMostLines = 60;
constexpr size_t kMostBytes = 4096;

// Of ASCII alone: scripts without blanks would be one word a line.
bool is_word(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') ||
         (c >= 'A' && c <= 'Z') || c == '_';
}

bool is_blank(std::string_view text) {
  return text.find_first_not_of(" \t\r") == text.npos;
}

// Back to where a character begins that has a column of its own.
size_t to_character(std::string_view line, size_t at) {
  while (at > 0) {
    std::string_view rest = line.substr(at);
    bool inside = at < line.size() &&
                  (static_cast<unsigned char>(line[at]) & 0xC0) == 0x80;
    if (!inside && (rest.empty() || width_of(take_utf8(rest).c) != 0)) break;
    --at;
  }
  return at;
}

// Runs of one origin that touch `at`: its first line and how many there are.
struct Run {
  size_t begin = 0, count = 0;
};
Run run_at(const std::vector<diff::Line>& lines, size_t at) {
  const char origin = lines[at].origin;
  Run run{at, 1};
  while (run.begin > 0 && lines[run.begin - 1].origin == origin &&
         run.count <= kMostLines)
    --run.begin, ++run.count;
  while (run.begin + run.count < lines.size() &&
         lines[run.begin + run.count].origin == origin &&
         run.count <= kMostLines)
    ++run.count;
  return run;
}

}  // namespace

std::optional<size_t> partner(const std::vector<diff::Line>& lines, size_t at) {
  const char origin = lines[at].origin;
  if (origin != '-' && origin != '+') return std::nullopt;
  const Run own = run_at(lines, at);
  if (own.count > kMostLines) return std::nullopt;
  // What goes stands before what comes.
  const size_t next = own.begin + own.count;
  if (origin == '-' && (next >= lines.size() || lines[next].origin != '+'))
    return std::nullopt;
  if (origin == '+' && (own.begin == 0 || lines[own.begin - 1].origin != '-'))
    return std::nullopt;
  const Run other = run_at(lines, origin == '-' ? next : own.begin - 1);
  if (other.count != own.count) return std::nullopt;
  return other.begin + (at - own.begin);
}

std::optional<Range> changed_part(std::string_view line,
                                  std::string_view other) {
  for (std::string_view* text : {&line, &other})
    if (text->ends_with('\n')) text->remove_suffix(1);
  if (line.size() > kMostBytes || other.size() > kMostBytes || line == other)
    return std::nullopt;
  const size_t least = std::min(line.size(), other.size());
  size_t begin = 0, tail = 0;
  while (begin < least && line[begin] == other[begin]) ++begin;
  while (tail < least - begin &&
         line[line.size() - 1 - tail] == other[other.size() - 1 - tail])
    ++tail;
  // The indentation alone is no likeness.
  if (is_blank(line.substr(0, begin)) &&
      is_blank(line.substr(line.size() - tail)))
    return std::nullopt;
  size_t end = line.size() - tail;
  if (begin > 0 && begin < line.size() && is_word(line[begin]))
    while (begin > 0 && is_word(line[begin - 1])) --begin;
  while (end < line.size() && end > begin && is_word(line[end - 1]) &&
         is_word(line[end]))
    ++end;
  begin = to_character(line, begin);
  while (end < line.size() && to_character(line, end) != end) ++end;
  if (begin >= end) return std::nullopt;
  return Range{begin, end};
}

std::string shown_line(const std::vector<diff::Line>& lines, size_t at,
                       bool color) {
  const diff::Line& line = lines[at];
  std::string_view text = line.text;
  if (text.ends_with('\n')) text.remove_suffix(1);
  if (!color || line.origin == ' ')
    return line.origin + escape(text, Escape::kLine);
  std::string out = line.origin == '+' ? "\x1b[32m+" : "\x1b[31m-";
  Range marked;
  if (auto other = partner(lines, at))
    marked = changed_part(text, lines[*other].text).value_or(Range{});
  auto add = [&](size_t begin, size_t end) {
    out += escape(text.substr(begin, end - begin), Escape::kLine);
  };
  add(0, marked.begin);
  if (marked.end > marked.begin) {
    out += "\x1b[1;4m";
    add(marked.begin, marked.end);
    out += "\x1b[22;24m";
  }
  add(marked.end, text.size());
  return out + "\x1b[m";
}

}  // namespace stoplog::cli
