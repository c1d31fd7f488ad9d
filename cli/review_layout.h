// SPDX-License-Identifier: Apache-2.0
// What the review looks like: a pure function from the model to rows of styled
// text that fit the screen exactly. The terminal only paints it, so a test can
// read a whole screen as text.
//
//   Frame frame = layout(model, {.ascii = false});
//   CHECK(to_text(frame) == "...");
//
// Everything in a frame is safe to print: escaped, no tabs, no more columns
// than the screen has.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cli/review_model.h"

namespace stoplog::cli {

enum class Ink : uint8_t {
  kPlain,
  kFaint,
  kStrong,
  kAdded,
  kRemoved,
  kHead,  // of a hunk
  kDanger,
  kWarn,
  kApproved,
  kRejected,
};

struct Span {
  int column = 0;
  std::string text;
  Ink ink = Ink::kPlain;
  bool reverse = false;
  bool mark = false;  // another word than before
};

struct Frame {
  int columns = 0;
  std::vector<std::vector<Span>> rows;  // later spans lie over earlier ones
  // Where the terminal's cursor stands while something is typed.
  struct Point {
    int column, row;
  };
  std::optional<Point> cursor;
};

struct LayoutOptions {
  bool ascii = false;  // no characters beyond ASCII for our own marks
};

Frame layout(const ReviewModel& model, const LayoutOptions& options);

// The screen as text: one line a row, blanks at the end cut off. A wide
// character stands for its two columns.
std::string to_text(const Frame& frame);

}  // namespace stoplog::cli
