// SPDX-License-Identifier: Apache-2.0
// A line that a terminal would break anywhere, broken at blanks.
//
//   out << fold(line, 80, "      ") << '\n';
//
// `line` is escaped (base/escape.h) and may hold colours of our own; each row
// ends its colour and takes it up again. A word wider than a row is broken
// where the row ends. Rows after the first begin with `lead` (or its beginning,
// where that would take more than a quarter of the columns), whatever the text
// is: no part of a name can pass for a line of its own. Nothing goes but the
// blanks at a break.
//
//   fold_prose(sentences, 80)
//
// breaks our own sentences at blanks alone, further rows after two: what stands
// in backquotes is to be typed, and stays whole. Pure.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace stoplog {

std::string fold(std::string_view line, size_t columns, std::string_view lead);
std::string fold_prose(std::string_view text, size_t columns);

}  // namespace stoplog
