// SPDX-License-Identifier: Apache-2.0
// Small words shared by the renderers: colours, names, numbers.
#pragma once

#include <string>
#include <string_view>

#include "diff/render.h"

namespace stoplog::diff {

enum class Ink { kRed, kGreen, kYellow, kCyan, kBold, kAlarm };

// The text in that colour; as it is when `color` is false.
std::string paint(bool color, Ink ink, std::string_view text);

// A name as the output wants it: escaped on a terminal, else quoted as git
// does.
std::string shown_name(std::string_view name, const RenderOptions& options);

// A line of such names and of our own words: on a terminal broken at blanks,
// each further row after `lead` (base/fold.h).
std::string shown_line(const std::string& line, std::string_view lead,
                       const RenderOptions& options);

// "A", "M", "D", "R", "T" as git has them; a change of mode is "M".
char letter_of(const Change& change);

// Whether the lists show it: ignored files only on request, or when deleted or
// dangerous.
bool is_listed(const Change& change, bool ignored,
               const std::vector<RelPath>& paths);

// Tells lines of content from headers in a patch of our own making: it counts
// the lines that each hunk announces, so no content can pass for a header.
class HunkCounter {
 public:
  // A line "@@ -1,2 +3,4 @@ …".
  void start(std::string_view header);
  // Whether this line belongs to the hunk; counts it if so. The remark about a
  // missing newline does not.
  bool is_content(std::string_view line);

 private:
  long old_left_ = 0, new_left_ = 0;
};

std::string plural(uint64_t count, std::string_view one, std::string_view many);

}  // namespace stoplog::diff
