// SPDX-License-Identifier: Apache-2.0
// Keys of the review: a character is its code point, the others lie beyond
// Unicode. kHelpText is the one list of what they do: `?` shows it, and a test
// presses every key in it.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace stoplog::cli {

using Key = uint32_t;

namespace key {
inline constexpr Key kEscape = 27, kEnter = '\n', kTab = '\t';
inline constexpr Key kUp = 0x110000, kDown = 0x110001, kLeft = 0x110002,
                     kRight = 0x110003, kPageUp = 0x110004,
                     kPageDown = 0x110005, kHome = 0x110006, kEnd = 0x110007,
                     kBackspace = 0x110008, kOther = 0x110009;
}  // namespace key

struct HelpLine {
  std::string_view keys;
  std::string_view text;
};

inline constexpr std::array kHelpText = {
    HelpLine{"j k", "next, previous line (also the arrows)"},
    HelpLine{"J K", "next, previous hunk"},
    HelpLine{"n N", "next, previous undecided hunk, in any file"},
    HelpLine{"[ ]", "previous, next file"},
    HelpLine{"Tab", "to the list of files and back"},
    HelpLine{"!", "next danger: its lines, then the next file's"},
    HelpLine{"w", "next file that is new since you last looked"},
    HelpLine{"i", "about this file and hunk: risks, commands that made it"},
    HelpLine{"/", "search lines and names; empty repeats"},
    HelpLine{"m M", "next, previous match"},
    HelpLine{"y", "approve this hunk"},
    HelpLine{"x", "reject this hunk; asks for a reason"},
    HelpLine{"a d", "approve, reject the rest of the file"},
    HelpLine{"s", "split this hunk"},
    HelpLine{"{ }", "less, more context"},
    HelpLine{"u U", "undo, redo a decision"},
    HelpLine{"h l", "scroll left, right (also the arrows)"},
    HelpLine{"g G", "first, last line"},
    HelpLine{"c", "commit what is approved"},
    HelpLine{"q", "leave; decisions are kept"},
};

}  // namespace stoplog::cli
