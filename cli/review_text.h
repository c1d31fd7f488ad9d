// SPDX-License-Identifier: Apache-2.0
// Text of a tree made to fit columns: tabs expanded, everything that is not
// plain escaped (base/escape.h), wide characters never cut in half, and no more
// than four combining characters on one column.
//
//   Piece p = slice(line, 0, 60);      // p.text takes at most 60 columns
//   for (const std::string& row : wrap(sentence, 40)) ...
//
// slice() reads no further than it shows, so that a line of eight megabytes
// costs as much as a short one. Pure functions.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace stoplog::cli {

struct Piece {
  std::string text;   // safe, valid UTF-8
  size_t width = 0;   // columns that it takes
  bool more = false;  // the line goes on to the right
};

inline constexpr size_t kTab = 8;

// Columns [from, from + width) of a raw line; its newline is not shown.
Piece slice(std::string_view raw, size_t from, size_t width, size_t tab = kTab);
// A raw sentence in rows of at most `width` columns, broken at blanks where
// there are any; at least one row.
std::vector<std::string> wrap(std::string_view raw, size_t width);
// Raw bytes escaped and cut to fit, keeping the end: for paths.
std::string fit_path(std::string_view raw, size_t width);
// Spaces added up to `width` columns.
std::string pad(std::string safe, size_t width);

// Case counts only when the pattern has an upper-case ASCII letter.
bool matches(std::string_view text, std::string_view pattern);

}  // namespace stoplog::cli
