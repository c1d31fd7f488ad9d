// SPDX-License-Identifier: Apache-2.0
// Where two texts differ, roughly: windows of lines around the differences,
// with long common runs left out between them. What a line differ then has to
// look at is a few lines for each edit instead of two whole files. Pure.
#pragma once

#include <vector>

#include "diff/hunks.h"

namespace stoplog::diff {

struct Window {
  uint32_t old_begin = 0, old_count = 0;
  uint32_t new_begin = 0, new_count = 0;
  std::vector<Edit> parts;  // what differs in it, between common runs
};

// In order and apart; all lines outside of them are the same on both sides, in
// order. Empty when the texts are equal.
std::vector<Window> find_windows(const Lines& a, const Lines& b);

// True when no differ could keep more lines than stand between the window's
// parts: nothing that goes is among what comes (count each line on both sides).
// A line that goes and comes once, and stands nowhere else in the window, is
// kept: parts are cut there first.
bool settle_parts(const Lines& a, const Lines& b, Window& window);
// True when a part could as well be marked a line further up or down.
bool parts_can_move(const Lines& a, const Lines& b, const Window& window);

}  // namespace stoplog::diff
