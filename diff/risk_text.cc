// SPDX-License-Identifier: Apache-2.0
#include "diff/risk_text.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "base/escape.h"
#include "diff/secrets.h"

namespace stoplog::diff {
namespace {

constexpr size_t kSecretsNamed = 5;
// Each is looked for in the old text, of up to 8 MiB.
constexpr size_t kSecretsLooked = 256;
constexpr size_t kLineToRead = 5000;

// Lines around an edit that are looked at with it: what is added may make
// something of the lines next to it (the head of a key is there already).
constexpr uint32_t kAround = 3;

// Lines that differ, and their neighbours.
struct Region {
  std::string_view old_part, new_part;
  uint32_t line = 1;  // of the new text, at which new_part begins

  uint32_t line_of(size_t at) const {
    return line + static_cast<uint32_t>(std::count(
                      new_part.begin(),
                      new_part.begin() + static_cast<long>(at), '\n'));
  }
};

// All between common head and tail, widened to whole lines.
Region between_ends(std::string_view a, std::string_view b) {
  size_t shorter = std::min(a.size(), b.size());
  size_t head = static_cast<size_t>(
      std::mismatch(a.begin(), a.begin() + static_cast<long>(shorter),
                    b.begin())
          .first -
      a.begin());
  while (head > 0 && a[head - 1] != '\n') head--;
  size_t tail = 0;
  while (tail < shorter - head &&
         a[a.size() - 1 - tail] == b[b.size() - 1 - tail])
    tail++;
  while (tail > 0 && a[a.size() - tail] != '\n') tail--;
  uint32_t before = static_cast<uint32_t>(
      std::count(b.begin(), b.begin() + static_cast<long>(head), '\n'));
  return {a.substr(head, a.size() - head - tail),
          b.substr(head, b.size() - head - tail), before + 1};
}

std::vector<Region> regions_of(const TextDiff& diff) {
  std::vector<Region> regions;
  const std::vector<Edit>& edits = diff.edits;
  for (size_t i = 0; i < edits.size();) {
    size_t last = i;
    while (last + 1 < edits.size() && edits[last + 1].old_line -
                                              edits[last].old_line -
                                              edits[last].old_count <=
                                          2 * kAround)
      last++;
    uint32_t before = std::min(kAround, edits[i].old_line);
    uint32_t old_begin = edits[i].old_line - before;
    uint32_t new_begin = edits[i].new_line - before;
    uint32_t old_end = edits[last].old_line + edits[last].old_count;
    uint32_t new_end = edits[last].new_line + edits[last].new_count;
    uint32_t after = std::min(kAround, diff.old_lines.count() - old_end);
    regions.push_back(
        {diff.old_lines.range(old_begin, old_end + after - old_begin),
         diff.new_lines.range(new_begin, new_end + after - new_begin),
         new_begin + 1});
    i = last + 1;
  }
  return regions;
}

enum class Script { kNone, kLatin, kCyrillic, kGreek };

Script script_of(char32_t c) {
  if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
      (c >= 0xC0 && c <= 0x24F && c != 0xD7 && c != 0xF7))
    return Script::kLatin;
  if (c >= 0x370 && c <= 0x3FF) return Script::kGreek;
  if (c >= 0x400 && c <= 0x52F) return Script::kCyrillic;
  return Script::kNone;
}

// How often each thing that misleads a reader occurs, and the first of it.
struct Odd {
  size_t bidi = 0, invisible = 0, mixed = 0, escapes = 0, returns = 0;
  char32_t first_bidi = 0, first_invisible = 0;
  std::string first_mixed;
  // Where the first of each is, in bytes; then in lines.
  size_t bidi_at = 0, invisible_at = 0, mixed_at = 0, escape_at = 0,
         return_at = 0;
};

// Letters of one word: does it mix Latin with look-alikes?
class Word {
 public:
  void take(char32_t c, std::string_view bytes, size_t at, Odd& odd) {
    at_ = at;
    Script script = script_of(c);
    if (script == Script::kNone && !(c >= '0' && c <= '9') && c != '_')
      return end(odd);
    if (text_.size() < 64) text_ += bytes;
    latin_ |= script == Script::kLatin;
    // A lone Greek letter in a name (deltaθ) is ordinary mathematics.
    greek_ += script == Script::kGreek;
    cyrillic_ |= script == Script::kCyrillic;
  }
  void end(Odd& odd) {
    if (latin_ && (cyrillic_ || greek_ > 1)) {
      if (odd.mixed++ == 0) {
        odd.first_mixed = text_;
        odd.mixed_at = at_;  // at its end, on the same line
      }
    }
    *this = Word();
  }

 private:
  std::string text_;
  bool latin_ = false, cyrillic_ = false;
  size_t greek_ = 0, at_ = 0;
};

void count_char(char32_t c, char32_t before, size_t at, Odd& odd) {
  // Joiners and selectors are part of emoji; a mark at the very start says
  // UTF-8.
  bool emoji = (c == 0xFE0F || c == 0x200D) && before >= 0x80;
  bool mark = c == 0xFEFF && before == 0;
  if (emoji || mark) return;
  switch (kind_of(c)) {
    case CharKind::kBidi:
      if (odd.bidi++ == 0) {
        odd.first_bidi = c;
        odd.bidi_at = at;
      }
      break;
    case CharKind::kInvisible:
      if (odd.invisible++ == 0) {
        odd.first_invisible = c;
        odd.invisible_at = at;
      }
      break;
    case CharKind::kControl:
      if (odd.escapes++ == 0) odd.escape_at = at;
      break;
    case CharKind::kPlain:
      break;
  }
}

Odd look(std::string_view text) {
  Odd odd;
  Word word;
  char32_t before = 0;
  bool plain_line = true;  // no letter beyond ASCII in this word yet
  std::string_view rest = text;
  while (!rest.empty()) {
    unsigned char c = static_cast<unsigned char>(rest[0]);
    const size_t at = text.size() - rest.size();
    if (c < 0x80) {
      bool end_of_line = rest.size() > 1 && rest[1] == '\n';
      if (c == '\r' && !end_of_line && rest.size() > 1) {
        if (odd.returns++ == 0) odd.return_at = at;
      } else if (c < 0x20 && c != '\t' && c != '\n' && c != '\f' && c != '\r') {
        if (odd.escapes++ == 0) odd.escape_at = at;
      }
      word.take(c, rest.substr(0, 1), at, odd);
      before = c;
      rest.remove_prefix(1);
      continue;
    }
    plain_line = false;
    std::string_view start = rest;
    Decoded decoded = take_utf8(rest);
    if (!decoded.valid) continue;
    word.take(decoded.c, start.substr(0, start.size() - rest.size()), at, odd);
    count_char(decoded.c, before, at, odd);
    before = decoded.c;
  }
  if (!plain_line) word.end(odd);
  return odd;
}

// Pure printable ASCII is the common case and needs no decoding.
bool is_plain(std::string_view text) {
  static constexpr auto kOdd = [] {
    std::array<unsigned char, 256> odd{};
    for (size_t c = 0; c < 256; c++)
      odd[c] = c >= 0x80 || (c < 0x20 && c != '\n' && c != '\t');
    return odd;
  }();
  // Without a branch a byte: most texts are plain to their end.
  while (!text.empty()) {
    unsigned char found = 0;
    std::string_view piece = text.substr(0, 4096);
    for (char c : piece) found |= kOdd[static_cast<unsigned char>(c)];
    if (found != 0) return false;
    text.remove_prefix(piece.size());
  }
  return true;
}

Odd operator+(Odd a, const Odd& b) {
  if (a.bidi == 0) {
    a.first_bidi = b.first_bidi;
    a.bidi_at = b.bidi_at;
  }
  if (a.invisible == 0) {
    a.first_invisible = b.first_invisible;
    a.invisible_at = b.invisible_at;
  }
  if (a.mixed == 0) {
    a.first_mixed = b.first_mixed;
    a.mixed_at = b.mixed_at;
  }
  if (a.escapes == 0) a.escape_at = b.escape_at;
  if (a.returns == 0) a.return_at = b.return_at;
  a.bidi += b.bidi;
  a.invisible += b.invisible;
  a.mixed += b.mixed;
  a.escapes += b.escapes;
  a.returns += b.returns;
  return a;
}

Odd in_lines(Odd odd, const Region& region) {
  for (size_t* at : {&odd.bidi_at, &odd.invisible_at, &odd.mixed_at,
                     &odd.escape_at, &odd.return_at})
    *at = region.line_of(*at);
  return odd;
}

std::string in_line(uint32_t line) {
  return line > 0 ? fmt::format(" in line {}", line) : "";
}

void add_odd(const std::vector<Region>& regions, std::vector<Risk>& risks) {
  Odd now, old;
  for (const Region& region : regions) {
    if (!is_plain(region.new_part))
      now = now + in_lines(look(region.new_part), region);
    if (!is_plain(region.old_part)) old = old + look(region.old_part);
  }
  // Where the old text has some too, the first need not be the new one.
  auto warn = [&](std::string_view code, size_t before, size_t at,
                  std::string_view what, std::string_view means) {
    const auto line = before == 0 ? static_cast<uint32_t>(at) : 0;
    risks.push_back({Level::kWarn, std::string(code),
                     fmt::format("{}{}{}", what, in_line(line), means), line});
  };
  auto number = [](char32_t c) { return static_cast<uint32_t>(c); };
  if (now.bidi > old.bidi)
    warn("bidi", old.bidi, now.bidi_at,
         fmt::format("hidden bidirectional control U+{:04X}",
                     number(now.first_bidi)),
         ": the text is not what it looks like");
  if (now.invisible > old.invisible)
    warn("invisible", old.invisible, now.invisible_at,
         fmt::format("hidden character U+{:04X}", number(now.first_invisible)),
         ": takes no space and is still there");
  if (now.mixed > old.mixed)
    warn("mixed-script", old.mixed, now.mixed_at,
         fmt::format("'{}'", now.first_mixed),
         " mixes letters of two alphabets that look alike");
  if (now.returns > old.returns)
    warn("carriage-return", old.returns, now.return_at,
         "a carriage return within the text", " hides what stands before it");
  if (now.escapes > old.escapes)
    warn("control-character", old.escapes, now.escape_at,
         "control characters that a terminal would obey", "");
}

void add_secrets(const std::vector<Region>& regions, std::string_view old_text,
                 SecretKinds kinds, std::vector<Risk>& risks) {
  // What is no text has no lines.
  const bool has_lines = kinds == SecretKinds::kAll;
  size_t named = 0, compared = 0;
  for (const Region& region : regions) {
    for (const Secret& secret :
         find_secrets(region.new_part, kSecretsLooked + 1, kinds)) {
      if (++compared > kSecretsLooked) {
        risks.push_back({Level::kDanger, "secret",
                         "has more that looks like a secret than could be "
                         "compared with what was there"});
        return;
      }
      if (secret.what != kUnreadSecrets &&
          old_text.find(secret.value) != std::string_view::npos)
        continue;
      if (++named > kSecretsNamed) return;
      // The beginning is enough to find it; the rest stays out of logs.
      std::string_view start = secret.value.substr(0, 8);
      const uint32_t line =
          has_lines ? region.line_of(static_cast<size_t>(
                          secret.value.data() - region.new_part.data()))
                    : 0;
      risks.push_back(
          {Level::kDanger, "secret",
           fmt::format("adds {} ({}…){}", secret.what,
                       start.substr(0, start.find('\n')), in_line(line)),
           line});
    }
  }
}

size_t longest_line(std::string_view text) {
  size_t most = 0;
  for (size_t at = 0; at < text.size();) {
    size_t end = std::min(text.find('\n', at), text.size());
    most = std::max(most, end - at);
    at = end + 1;
  }
  return most;
}

void add_unreadable(const std::vector<Region>& regions,
                    std::string_view old_text, std::string_view new_text,
                    std::vector<Risk>& risks) {
  size_t now = 0;
  for (const Region& region : regions)
    now = std::max(now, longest_line(region.new_part));
  if (now > kLineToRead && longest_line(old_text) <= kLineToRead)
    risks.push_back(
        {Level::kWarn, "minified",
         fmt::format("a line of {} bytes: nobody can review it", now)});
  std::string_view head = new_text.substr(0, 2000);
  if (head.find("@generated") != std::string_view::npos ||
      head.find("DO NOT EDIT") != std::string_view::npos ||
      head.find("Code generated by") != std::string_view::npos)
    risks.push_back({Level::kInfo, "generated",
                     "says of itself that a program generates it"});
}

}  // namespace

std::vector<Risk> risks_of_text(std::string_view old_text,
                                std::string_view new_text,
                                const TextDiff* diff) {
  std::vector<Risk> risks;
  std::vector<Region> regions =
      diff != nullptr ? regions_of(*diff)
                      : std::vector{between_ends(old_text, new_text)};
  add_secrets(regions, old_text, SecretKinds::kAll, risks);
  add_odd(regions, risks);
  add_unreadable(regions, old_text, new_text, risks);
  return risks;
}

std::vector<Risk> risks_of_bytes(std::string_view old_bytes,
                                 std::string_view new_bytes) {
  std::vector<Risk> risks;
  std::vector regions{between_ends(old_bytes, new_bytes)};
  // What is assigned to a name is no text here, and often random.
  add_secrets(regions, old_bytes, SecretKinds::kWellKnown, risks);
  return risks;
}

}  // namespace stoplog::diff
