// SPDX-License-Identifier: Apache-2.0
#include "base/escape.h"

#include <algorithm>
#include <array>
#include <vector>

namespace stoplog {
namespace {

struct Range {
  char32_t first;
  char32_t last;
};

template <size_t N>
bool in_ranges(const std::array<Range, N>& ranges, char32_t c) {
  auto it = std::upper_bound(
      ranges.begin(), ranges.end(), c,
      [](char32_t value, const Range& range) { return value < range.first; });
  return it != ranges.begin() && c <= std::prev(it)->last;
}

constexpr std::array<Range, 4> kBidi = {
    {{0x061c, 0x061c}, {0x200e, 0x200f}, {0x202a, 0x202e}, {0x2066, 0x2069}}};

// Default-ignorable characters, fillers and blanks that have no glyph.
// Variation selectors and tags are in it: text can be smuggled in them.
constexpr std::array<Range, 20> kInvisible = {{
    {0x00ad, 0x00ad},   {0x034f, 0x034f},   {0x115f, 0x1160},
    {0x17b4, 0x17b5},   {0x180b, 0x180f},   {0x200b, 0x200d},
    {0x2060, 0x2065},   {0x206a, 0x206f},   {0x2800, 0x2800},
    {0x3164, 0x3164},   {0xfe00, 0xfe0f},   {0xfeff, 0xfeff},
    {0xffa0, 0xffa0},   {0xfff0, 0xfffb},   {0xfffe, 0xffff},
    {0x133fc, 0x133fc}, {0x1bca0, 0x1bca3}, {0x1d159, 0x1d159},
    {0x1d173, 0x1d17a}, {0xe0000, 0xe0fff},
}};

constexpr std::string_view kEllipsis = "…";

void append_shown(std::string& out, char32_t c) {
  if (c < 0x20 || c == 0x7f) {
    out += '^';
    out += static_cast<char>(c ^ 0x40);
  } else {
    fmt::format_to(std::back_inserter(out), "<U+{:04X}>",
                   static_cast<uint32_t>(c));
  }
}

bool stays(char32_t c, Escape what) {
  return (c == '\t' && what != Escape::kName) ||
         (c == '\n' && what == Escape::kText);
}

// The emoji selector after a symbol is how ordinary keyboards write emoji; it
// hides nothing there.
bool is_emoji_selector(char32_t c, char32_t previous) {
  return c == 0xfe0f &&
         (previous == 0xa9 || previous == 0xae ||
          (previous >= 0x203c && previous < 0x3300) || previous >= 0x1f000);
}

// Printable ASCII at the beginning. In blocks without a branch a byte, which
// the compiler turns into a few instructions for each.
size_t plain_run(std::string_view bytes) {
  auto is_odd = [](char c) {
    return static_cast<unsigned char>(c - 0x20) >= 0x7f - 0x20;
  };
  constexpr size_t kBlock = 32;
  size_t run = 0;
  for (; run + kBlock <= bytes.size(); run += kBlock) {
    unsigned char odd = 0;
    for (size_t i = 0; i < kBlock; i++)
      odd = static_cast<unsigned char>(odd | is_odd(bytes[run + i]));
    if (odd != 0) break;
  }
  while (run < bytes.size() && !is_odd(bytes[run])) run++;
  return run;
}

}  // namespace

CharKind kind_of(char32_t c) {
  if (c < 0x20 || (c >= 0x7f && c < 0xa0) || c == 0x2028 || c == 0x2029)
    return CharKind::kControl;
  if (c < 0xad) return CharKind::kPlain;
  if (in_ranges(kBidi, c)) return CharKind::kBidi;
  return in_ranges(kInvisible, c) ? CharKind::kInvisible : CharKind::kPlain;
}

Decoded take_utf8(std::string_view& text) {
  auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  unsigned char lead = byte(0);
  size_t length = lead < 0x80   ? 1
                  : lead < 0xc2 ? 0
                  : lead < 0xe0 ? 2
                  : lead < 0xf0 ? 3
                  : lead < 0xf5 ? 4
                                : 0;
  constexpr std::array<unsigned char, 5> kMask = {0, 0x7f, 0x1f, 0x0f, 0x07};
  char32_t c = lead & kMask[length];
  bool valid = length != 0 && length <= text.size();
  for (size_t i = 1; valid && i < length; ++i) {
    valid = (byte(i) & 0xc0) == 0x80;
    c = c << 6 | (byte(i) & 0x3f);
  }
  constexpr std::array<char32_t, 5> kLeast = {0, 0, 0x80, 0x800, 0x10000};
  valid = valid && c >= kLeast[length] && c <= 0x10ffff &&
          !(c >= 0xd800 && c <= 0xdfff);
  if (!valid) {
    text.remove_prefix(1);
    return {.c = lead, .valid = false};
  }
  text.remove_prefix(length);
  return {.c = c, .valid = true};
}

void append_utf8(std::string& out, char32_t c) {
  auto put = [&](char32_t b) { out += static_cast<char>(b); };
  if (c < 0x80) {
    put(c);
  } else if (c < 0x800) {
    put(0xc0 | c >> 6);
    put(0x80 | (c & 0x3f));
  } else if (c < 0x10000) {
    put(0xe0 | c >> 12);
    put(0x80 | (c >> 6 & 0x3f));
    put(0x80 | (c & 0x3f));
  } else {
    put(0xf0 | c >> 18);
    put(0x80 | (c >> 12 & 0x3f));
    put(0x80 | (c >> 6 & 0x3f));
    put(0x80 | (c & 0x3f));
  }
}

bool is_utf8(std::string_view text) {
  while (!text.empty())
    if (!take_utf8(text).valid) return false;
  return true;
}

std::string escape(std::string_view bytes, Escape what) {
  std::string out;
  out.reserve(bytes.size());
  char32_t previous = 0;
  while (!bytes.empty()) {
    // Most text is plain: decoding it was a quarter of a coloured patch.
    if (size_t run = plain_run(bytes); run > 0) {
      out += bytes.substr(0, run);
      previous = static_cast<unsigned char>(bytes[run - 1]);
      bytes.remove_prefix(run);
      continue;
    }
    auto [c, valid] = take_utf8(bytes);
    if (!valid) {
      fmt::format_to(std::back_inserter(out), "\\x{:02x}",
                     static_cast<uint32_t>(c));
    } else if (kind_of(c) == CharKind::kPlain || stays(c, what) ||
               is_emoji_selector(c, previous)) {
      append_utf8(out, c);
    } else {
      append_shown(out, c);
    }
    previous = valid ? c : 0;
  }
  return out;
}

std::string quote_name(std::string_view name) {
  constexpr std::string_view kLetters = "abtnvfr";  // \a is 7 … \r is 13
  std::string out = "\"";
  bool needed = false;
  for (char raw : name) {
    auto c = static_cast<unsigned char>(raw);
    if (c >= 0x20 && c < 0x7f && c != '"' && c != '\\') {
      out += raw;
      continue;
    }
    needed = true;
    out += '\\';
    if (c == '"' || c == '\\')
      out += raw;
    else if (c >= 7 && c <= 13)
      out += kLetters[c - 7U];
    else
      fmt::format_to(std::back_inserter(out), "{:03o}", c);
  }
  return needed ? out + '"' : std::string(name);
}

namespace {

// What follows a backslash; takes it from `rest`.
Result<char> unescape(std::string_view& rest) {
  if (rest.empty()) return fail(Code::kInvalid, "a quoted name ends early");
  char c = rest[0];
  if (c >= '0' && c <= '3') {
    if (rest.size() < 3)
      return fail(Code::kInvalid, "a quoted name ends early");
    int value = 0;
    for (char digit : rest.substr(0, 3)) {
      if (digit < '0' || digit > '7')
        return fail(Code::kInvalid, "bad octal digit in a quoted name");
      value = value * 8 + (digit - '0');
    }
    rest.remove_prefix(3);
    return static_cast<char>(value);
  }
  rest.remove_prefix(1);
  if (c == '"' || c == '\\') return c;
  size_t letter = std::string_view("abtnvfr").find(c);
  if (letter == std::string_view::npos)
    return fail(Code::kInvalid, "unknown escape in a quoted name");
  return static_cast<char>(7 + letter);
}

}  // namespace

Result<std::string> unquote_name(std::string_view text) {
  if (text.empty() || text[0] != '"') return std::string(text);
  std::string_view rest = text.substr(1);
  std::string out;
  while (!rest.empty() && rest[0] != '"') {
    char c = rest[0];
    rest.remove_prefix(1);
    out += c == '\\' ? TRY(unescape(rest)) : c;
  }
  if (rest != "\"")
    return fail(Code::kInvalid, "a quoted name must end with its quote");
  return out;
}

size_t display_width(std::string_view escaped) {
  size_t width = 0;
  while (!escaped.empty())
    width += static_cast<size_t>(width_of(take_utf8(escaped).c));
  return width;
}

std::string fit(std::string_view escaped, size_t columns, Cut cut) {
  size_t total = display_width(escaped);
  if (total <= columns) return std::string(escaped);
  if (columns == 0) return "";
  size_t keep = columns - 1;  // one for the ellipsis
  size_t drop = cut == Cut::kStart ? total - keep : 0;
  std::string out(cut == Cut::kStart ? kEllipsis : "");
  size_t at = 0;
  while (!escaped.empty()) {
    char32_t c = take_utf8(escaped).c;
    auto width = static_cast<size_t>(width_of(c));
    bool kept = cut == Cut::kEnd ? at + width <= keep : at >= drop;
    // A combining mark right after the cut would sit on the ellipsis.
    if (width == 0 && cut == Cut::kStart && at == drop && out == kEllipsis)
      kept = false;
    if (cut == Cut::kEnd && !kept) break;
    if (kept) append_utf8(out, c);
    at += width;
  }
  if (cut == Cut::kEnd) out += kEllipsis;
  return out;
}

}  // namespace stoplog
