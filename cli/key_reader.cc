// SPDX-License-Identifier: Apache-2.0
#include "cli/key_reader.h"

#include <cwchar>
#include <string>

#include "base/escape.h"

namespace stoplog::cli {
namespace {

constexpr Key kEsc = 27, kBell = 7, kCancel = 0x18, kSubstitute = 0x1a;
// Within a sequence, where a line may be slow; a person who began one by
// Alt-] has the keyboard back after it.
constexpr int kSequenceMs = 200;

bool is_byte(Key c) { return c < 0x100; }
bool ends_early(Key c) { return c == kCancel || c == kSubstitute; }

}  // namespace

Key KeyReader::pull(int wait_ms) {
  if (back_.empty()) return source_(wait_ms);
  Key out = back_.back();
  back_.pop_back();
  return out;
}

Key KeyReader::next() {
  Key c = pull(0);
  if (c == kNone) return 0;
  if (!is_byte(c)) return c;
  if (c >= 0x80) return beyond_ascii(c);
  switch (c) {
    case 0:  // Ctrl-Space; 0 is no key
      return key::kOther;
    case kEsc:
      return escape();
    case '\r':
      return key::kEnter;
    case 8:
    case 127:
      return key::kBackspace;
    default:
      return c;
  }
}

Key KeyReader::escape() {
  Key c = pull(0);
  if (c == kNone) return key::kEscape;
  switch (c) {
    case '[':
      return skip_csi();
    case 'O':
      return skip_final();
    case ']':
      return skip_string(true);
    case 'P':
    case 'X':
    case '^':
    case '_':
      return skip_string(false);
    default:
      break;
  }
  put_back(c);
  // ESC / Z is a VT52's answer.
  if (c >= 0x20 && c <= 0x2f) return skip_final();
  return key::kEscape;
}

Key KeyReader::beyond_ascii(Key first) {
  if (first < 0xa0) return introduced_by(first);
  if (!utf8_) {
    std::wint_t wide = std::btowc(static_cast<int>(first));
    return wide == WEOF ? key::kOther : static_cast<Key>(wide);
  }
  std::string bytes(1, static_cast<char>(first));
  size_t length = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : first >= 0xc0 ? 2 : 1;
  while (bytes.size() < length) {
    Key c = pull(kSequenceMs);
    if (c == kNone) return key::kOther;
    if (c < 0x80 || !is_byte(c)) {
      put_back(c);
      return key::kOther;
    }
    bytes.push_back(static_cast<char>(c));
  }
  std::string_view rest = bytes;
  Decoded decoded = take_utf8(rest);
  if (!decoded.valid) return key::kOther;
  Key c = decoded.c;
  return c < 0xa0 ? introduced_by(c) : c;
}

Key KeyReader::introduced_by(Key c1) {
  switch (c1) {
    case 0x8f:
      return skip_final();
    case 0x9b:
      return skip_csi();
    case 0x9d:
      return skip_string(true);
    case 0x90:
    case 0x98:
    case 0x9e:
    case 0x9f:
      return skip_string(false);
    default:
      return key::kOther;
  }
}

Key KeyReader::skip_csi() {
  bool bare = true;
  while (true) {
    Key c = pull(kSequenceMs);
    if (c == kNone || !is_byte(c) || ends_early(c)) return key::kOther;
    if (c == kEsc) {
      put_back(c);
      return key::kOther;
    }
    if (c >= 0x40 && c <= 0x7e) {
      // The mouse as X10 and xterm's highlighting report it, and the first
      // function keys of Linux' console, go on behind the final byte.
      if (!bare) return key::kOther;
      return skip(c == 'M'   ? 3
                  : c == 't' ? 2
                  : c == 'T' ? 6
                  : c == '[' ? 1
                             : 0);
    }
    bare = false;
  }
}

Key KeyReader::skip_string(bool bell_ends) {
  Key before = 0;
  while (true) {
    Key c = pull(kSequenceMs);
    if (c == kNone || ends_early(c)) return key::kOther;
    if (bell_ends && c == kBell) return key::kOther;
    // U+009C; in UTF-8 the byte alone may be a part of any character.
    if (c == 0x9c && (!utf8_ || before == 0xc2)) return key::kOther;
    if (c == kEsc) {
      Key end = pull(kSequenceMs);
      if (end == '\\' || end == kNone) return key::kOther;
      put_back(end);
      put_back(c);
      return key::kOther;
    }
    before = c;
  }
}

// Parameters and intermediate bytes, and the one that ends them.
Key KeyReader::skip_final() {
  while (true) {
    Key c = pull(kSequenceMs);
    if (c == kEsc) put_back(c);
    if (c < 0x20 || c > 0x3f) return key::kOther;
  }
}

Key KeyReader::skip(int count) {
  for (; count > 0; count--) {
    Key c = pull(kSequenceMs);
    if (c == kNone) break;
    // A coordinate may be a character of two bytes.
    if (utf8_ && (c & ~Key{0x1f}) == 0xc0) (void)pull(kSequenceMs);
  }
  return key::kOther;
}

}  // namespace stoplog::cli
