// SPDX-License-Identifier: Apache-2.0
// Which words of a changed line are other ones: of lines that were replaced one
// for one, what is left between what both begin and end with, out to whole
// words.
//
//   if (auto other = partner(hunk.lines, i))
//     for (auto [begin, end] : changed_part(lines[i].text, lines[*other].text))
//
// Only where as many lines came as went, and something is the same: elsewhere
// all of it is new, and the colour of the line says so. Bounded: long lines and
// large blocks have nothing marked. Pure; takes raw lines, gives byte offsets
// that cut no character.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "diff/hunks.h"

namespace stoplog::cli {

// The line that replaced `lines[at]`, or that it replaced.
std::optional<size_t> partner(const std::vector<diff::Line>& lines, size_t at);

// Bytes of `line`, without its newline.
struct Range {
  size_t begin = 0, end = 0;
};
std::optional<Range> changed_part(std::string_view line,
                                  std::string_view other);

// The line with its sign, safe to print, without a newline; in colour the words
// that are other ones are underlined.
std::string shown_line(const std::vector<diff::Line>& lines, size_t at,
                       bool color);

}  // namespace stoplog::cli
