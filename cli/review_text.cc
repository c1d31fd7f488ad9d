// SPDX-License-Identifier: Apache-2.0
#include "cli/review_text.h"

#include <algorithm>

#include "base/escape.h"

namespace stoplog::cli {
namespace {

constexpr int kMaxCombining = 4;

// One character taken from the front of `raw`: what is shown for it, and the
// columns that it takes when the line has reached column `at`.
struct Shown {
  std::string text;
  size_t width = 0;
};

Shown take(std::string_view& raw, size_t at, size_t tab) {
  std::string_view before = raw;
  if (raw.front() == '\t') {
    raw.remove_prefix(1);
    size_t blanks = tab - at % tab;
    return {std::string(blanks, ' '), blanks};
  }
  Decoded decoded = take_utf8(raw);
  std::string_view bytes = before.substr(0, before.size() - raw.size());
  if (decoded.valid && kind_of(decoded.c) == CharKind::kPlain)
    return {std::string(bytes), static_cast<size_t>(width_of(decoded.c))};
  std::string safe = escape(bytes);
  size_t width = display_width(safe);
  return {std::move(safe), width};
}

std::string_view without_newline(std::string_view raw) {
  if (raw.ends_with('\n')) raw.remove_suffix(1);
  return raw;
}

char lower(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

}  // namespace

Piece slice(std::string_view raw, size_t from, size_t width, size_t tab) {
  raw = without_newline(raw);
  Piece out;
  size_t at = 0;
  int combining = 0;
  while (!raw.empty()) {
    Shown shown = take(raw, at, tab);
    if (shown.width == 0) {
      // A mark belongs to the column before it; without one it is dropped.
      if (out.width > 0 && ++combining <= kMaxCombining) out.text += shown.text;
      continue;
    }
    combining = 0;
    size_t end = at + shown.width;
    if (end > from + width) {
      // Blanks and escapes are ASCII and can be cut; a wide character cannot.
      bool ascii = shown.text.size() == shown.width;
      size_t first = at < from ? from - at : 0;
      size_t fits =
          std::max(from + width, std::max(at, from)) - std::max(at, from);
      if (ascii && fits > 0) {
        out.text += shown.text.substr(first, fits);
        out.width += fits;
      }
      out.more = true;
      return out;
    }
    if (at >= from) {
      out.text += shown.text;
      out.width += shown.width;
    } else if (end > from) {  // begins left of the edge
      size_t rest = end - from;
      out.text += shown.text.size() == shown.width
                      ? shown.text.substr(shown.width - rest)
                      : std::string(rest, ' ');
      out.width += rest;
    }
    at = end;
  }
  return out;
}

std::vector<std::string> wrap(std::string_view raw, size_t width) {
  width = std::max<size_t>(width, 1);
  std::string safe = escape(raw);
  std::vector<std::string> rows;
  std::string_view rest = safe;
  while (true) {
    Piece piece = slice(rest, 0, width, 1);
    // A character wider than the column would never fit: drop it.
    if (piece.text.empty() && !rest.empty()) {
      take_utf8(rest);
      continue;
    }
    if (!piece.more) {
      rows.push_back(std::string(rest));
      return rows;
    }
    size_t cut = piece.text.size();
    if (rest.size() > cut && rest[cut] != ' ') {
      size_t blank = piece.text.rfind(' ');
      if (blank != std::string::npos && blank > 0) cut = blank;
    }
    rows.push_back(std::string(rest.substr(0, cut)));
    rest.remove_prefix(cut);
    while (rest.starts_with(' ')) rest.remove_prefix(1);
    if (rest.empty()) return rows;
  }
}

std::string fit_path(std::string_view raw, size_t width) {
  return fit(escape(raw), width, Cut::kStart);
}

std::string pad(std::string safe, size_t width) {
  size_t has = display_width(safe);
  if (has < width) safe.append(width - has, ' ');
  return safe;
}

bool matches(std::string_view text, std::string_view pattern) {
  if (pattern.empty()) return false;
  bool exact =
      std::ranges::any_of(pattern, [](char c) { return c >= 'A' && c <= 'Z'; });
  if (exact) return text.find(pattern) != text.npos;
  auto same = [](char a, char b) { return lower(a) == b; };
  return std::search(text.begin(), text.end(), pattern.begin(), pattern.end(),
                     same) != text.end();
}

}  // namespace stoplog::cli
