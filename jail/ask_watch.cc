// SPDX-License-Identifier: Apache-2.0
#include "jail/ask_watch.h"

#include <algorithm>
#include <array>
#include <string_view>

namespace stoplog::jail {
namespace {

constexpr size_t kBody = 32;
constexpr unsigned char kEnquiry = 5, kEsc = 27;

// Cursor keys, wrapping, blinking, the cursor, other screens, bracketed paste,
// synchronised output: modes that make a terminal send nothing by itself.
bool is_quiet_mode(std::string_view mode) {
  constexpr std::array<std::string_view, 10> kQuiet = {
      "1", "7", "12", "25", "47", "1047", "1048", "1049", "2004", "2026"};
  return std::ranges::find(kQuiet, mode) != kQuiet.end();
}

}  // namespace

void AskWatch::see(std::span<const std::byte> bytes) {
  for (std::byte byte : bytes) {
    if (asked_) return;
    see(static_cast<unsigned char>(byte));
  }
}

void AskWatch::text(unsigned char c) {
  if (c >= 0x20 && c != 0x7f)
    open_ = true;
  else if (c == '\n')
    open_ = false;
  if (c == kEsc) {
    at_ = At::kEscape;
    continued_ = 0;
    return;
  }
  // C1, alone or as UTF-8 writes it (after C2, 194).
  const bool c1 = c >= 0x80 && c < 0xa0;
  asked_ |= c == kEnquiry || (c1 && (continued_ == 0 || continued_ == 0xc2));
  if (c >= 0xc0)
    continued_ = c == 0xc2 ? c : c >= 0xf0 ? 3 : c >= 0xe0 ? 2 : 1;
  else
    continued_ =
        c < 0x80 || continued_ == 0xc2 ? 0 : std::max(continued_ - 1, 0);
}

void AskWatch::see(unsigned char c) {
  switch (at_) {
    case At::kText:
      return text(c);
    case At::kEscape:
      body_.clear();
      // Z is the old question who it is; P, X, ^ and _ begin strings.
      asked_ = std::string_view("ZPX^_").find(static_cast<char>(c)) !=
               std::string_view::npos;
      at_ = c == '['                ? At::kCsi
            : c == ']'              ? At::kOsc
            : c >= 0x20 && c < 0x30 ? At::kCharset
            : c == kEsc             ? At::kEscape
                                    : At::kText;
      return;
    case At::kCharset:
      if (c < 0x20 || c >= 0x30) at_ = At::kText;
      return;
    case At::kCsi:
      if (c >= 0x40 && c <= 0x7e) {
        asked_ = !csi_is_quiet(c);
        open_ = open_ && c == 'm';  // a colour
        at_ = At::kText;
      } else {
        // A control character within is obeyed, ESC begins anew: too odd.
        asked_ = c < 0x20 || c > 0x7e || body_.size() >= 4 * kBody;
        body_.push_back(static_cast<char>(c));
      }
      return;
    case At::kOsc:
      if (c == 7 || c == kEsc || c == 0x9c) {
        // Titles, the directory, links, and a shell's prompt marks.
        std::string_view number(body_.data(),
                                std::min(body_.find(';'), body_.size()));
        constexpr std::array<std::string_view, 6> kQuiet = {"0", "1", "2",
                                                            "7", "8", "133"};
        asked_ = std::ranges::find(kQuiet, number) == kQuiet.end();
        at_ = c == kEsc ? At::kEscape : At::kText;
      } else if (body_.size() < kBody) {
        body_.push_back(static_cast<char>(c));
      }
      return;
  }
}

bool AskWatch::csi_is_quiet(unsigned char final) const {
  std::string_view body = body_;
  const char letter = static_cast<char>(final);
  if (body.starts_with('?')) {
    if (letter != 'h' && letter != 'l') return letter == 'J' || letter == 'K';
    body.remove_prefix(1);
    while (true) {
      size_t end = std::min(body.find(';'), body.size());
      if (!is_quiet_mode(body.substr(0, end))) return false;
      if (end == body.size()) return true;
      body.remove_prefix(end + 1);
    }
  }
  if (body.ends_with(' ')) return letter == 'q';  // the cursor's form
  if (body == "!") return letter == 'p';          // a soft reset
  if (body.find_first_not_of("0123456789;:") != std::string_view::npos)
    return false;
  return std::string_view("@ABCDEFGHJKLMPSTXZ`abdefghlmrsu").find(letter) !=
         std::string_view::npos;
}

}  // namespace stoplog::jail
