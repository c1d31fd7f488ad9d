// SPDX-License-Identifier: Apache-2.0
// Untrusted bytes made safe to show: nothing in the result can move the cursor,
// recolour, hide, reorder or imitate the program's own output.
//
//   out << escape(name);                    // a\r -> a^M, U+202E -> <U+202E>
//   patch << quote_name(path);              // "a\tb\303\251", as git does
//   fit(escape(name), 40)                   // at most 40 columns, "…" at the
//   cut
//
// Escaped are: C0 controls and DEL (^M, ^[, ^?), C1 controls, bidirectional and
// invisible characters, line and paragraph separators (<U+0085>), bytes that
// are not valid UTF-8 (\xff). What is left is valid UTF-8. The result is for
// eyes, not for parsing: two inputs may look the same. Pure functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"

namespace stoplog {

enum class Escape {
  kName,  // everything, newline and tab included (^J, ^I)
  kLine,  // tab stays: one line of content
  kText,  // tab and newline stay
};
std::string escape(std::string_view bytes, Escape what = Escape::kName);

// What a code point would do to a reader.
enum class CharKind {
  kPlain,
  kControl,    // C0, DEL, C1, line and paragraph separators
  kBidi,       // changes the order in which text is shown
  kInvisible,  // takes no or blank space, yet is a character
};
CharKind kind_of(char32_t c);

// Takes one code point from the front of `text` (which is not empty). A byte
// that starts no valid, shortest-form sequence is taken alone and not valid.
struct Decoded {
  char32_t c = 0;
  bool valid = false;
};
Decoded take_utf8(std::string_view& text);
void append_utf8(std::string& out, char32_t c);
bool is_utf8(std::string_view text);

// git's C-style quoting with core.quotePath: quoted only when needed.
std::string quote_name(std::string_view name);
// The opposite; a text that does not start with '"' is taken as it is.
Result<std::string> unquote_name(std::string_view text);

// Columns that escaped text takes. Our own table (East Asian wide and emoji 2,
// combining 0), so that output does not depend on the locale.
int width_of(char32_t c);
size_t display_width(std::string_view escaped);
// Cut to `columns` with an ellipsis where it was cut; kStart keeps the end,
// which is what tells paths apart.
enum class Cut { kEnd, kStart };
std::string fit(std::string_view escaped, size_t columns, Cut cut = Cut::kEnd);

}  // namespace stoplog
