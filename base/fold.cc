// SPDX-License-Identifier: Apache-2.0
#include "base/fold.h"

#include <algorithm>
#include <utility>

#include "base/escape.h"

namespace stoplog {
namespace {

constexpr std::string_view kPlain = "\x1b[m";

// What cannot be broken: a colour, or a character with what combines with it.
struct Unit {
  std::string_view text;
  size_t width = 0;
  bool is_color() const { return text[0] == '\x1b'; }
};

Unit take_unit(std::string_view& rest) {
  std::string_view start = rest;
  auto taken = [&] { return start.substr(0, start.size() - rest.size()); };
  if (rest.starts_with("\x1b[")) {
    size_t end = rest.find('m');
    rest.remove_prefix(end == rest.npos ? rest.size() : end + 1);
    return {taken(), 0};
  }
  auto width = static_cast<size_t>(width_of(take_utf8(rest).c));
  for (std::string_view next = rest; !next.empty(); rest = next)
    if (width_of(take_utf8(next).c) != 0) break;
  return {taken(), width};
}

size_t painted_width(std::string_view text) {
  size_t width = 0;
  while (!text.empty()) width += take_unit(text).width;
  return width;
}

class Rows {
 public:
  Rows(size_t columns, std::string_view lead)
      : columns_(columns), lead_(lead.substr(0, columns / 4)) {}

  void word(std::string_view blanks, std::string_view word) {
    const size_t width = painted_width(word);
    const bool fits = width_ + blanks.size() + width <= columns_;
    if (!fits && width <= columns_ - lead_.size()) return next_row(), put(word);
    if (width_ + blanks.size() < columns_) {
      out_ += blanks;
      width_ += blanks.size();
    } else {
      next_row();
    }
    put(word);
  }
  std::string take() { return std::move(out_); }

 private:
  void put(std::string_view word) {
    while (!word.empty()) {
      const Unit unit = take_unit(word);
      if (unit.is_color())
        color_ = unit.text == kPlain ? "" : unit.text;
      else if (width_ + unit.width > columns_ && width_ > lead_.size())
        next_row();
      out_ += unit.text;
      width_ += unit.width;
    }
  }
  void next_row() {
    if (!color_.empty()) out_ += kPlain;
    out_ += '\n';
    out_ += lead_;
    out_ += color_;
    width_ = lead_.size();
  }

  size_t columns_;
  std::string_view lead_, color_;
  std::string out_;
  size_t width_ = 0;
};

// Up to the next blank that no backquote encloses.
size_t prose_word(std::string_view text) {
  size_t at = 0;
  for (; at < text.size() && text[at] != ' '; ++at) {
    if (text[at] != '`') continue;
    size_t end = text.find('`', at + 1);
    if (end != text.npos) at = end;
  }
  return at;
}

std::string prose_line(std::string_view line, size_t columns) {
  constexpr std::string_view kLead = "  ";
  std::string out;
  size_t column = 0;
  while (!line.empty()) {
    size_t blanks = std::min(line.find_first_not_of(' '), line.size());
    size_t length = prose_word(line.substr(blanks));
    std::string_view word = line.substr(blanks, length);
    size_t width = painted_width(word);
    if (column > 0 && column + blanks + width > columns) {
      out += '\n';
      out += kLead;
      column = kLead.size();
    } else {
      out.append(blanks, ' ');
      column += blanks;
    }
    out += word;
    column += width;
    line.remove_prefix(blanks + length);
  }
  return out;
}

}  // namespace

std::string fold_prose(std::string_view text, size_t columns) {
  if (columns == 0 || text.size() <= columns) return std::string(text);
  std::string out;
  while (true) {
    size_t end = text.find('\n');
    out += prose_line(text.substr(0, end), columns);
    if (end == text.npos) return out;
    out += '\n';
    text.remove_prefix(end + 1);
  }
}

std::string fold(std::string_view line, size_t columns, std::string_view lead) {
  // A column is a byte or more.
  if (columns == 0 || line.size() <= columns) return std::string(line);
  Rows rows(columns, lead);
  while (!line.empty()) {
    std::string_view blanks =
        line.substr(0, std::min(line.find_first_not_of(' '), line.size()));
    line.remove_prefix(blanks.size());
    std::string_view word = line.substr(0, line.find(' '));
    line.remove_prefix(word.size());
    rows.word(blanks, word);
  }
  return rows.take();
}

}  // namespace stoplog
