// SPDX-License-Identifier: Apache-2.0
#include "base/fold.h"

#include <random>

#include "base/escape.h"
#include "base/strings.h"
#include "catch_shim.h"

using namespace stoplog;

namespace {

std::string without_colors(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    size_t at = text.find("\x1b[");
    out += text.substr(0, at);
    if (at == text.npos) break;
    text.remove_prefix(text.find('m', at) + 1);
  }
  return out;
}

std::string letters(std::string_view text) {
  std::string out;
  for (char c : text)
    if (c != ' ' && c != '\n') out += c;
  return out;
}

}  // namespace

TEST_CASE("a line is broken at blanks and the rest hangs") {
  CHECK(fold("one two three four", 10, "    ") == "one two\n  three\n  four");
  CHECK(fold("one two", 10, "    ") == "one two");
  CHECK(fold("one two", 0, "    ") == "one two");
  CHECK(fold("  beneath another", 12, "    ") == "  beneath\n   another");
  // Exactly as wide as the screen is not too wide.
  CHECK(fold("12345 6789", 10, "  ") == "12345 6789");
  CHECK(fold("12345 67890", 10, "  ") == "12345\n  67890");
}

TEST_CASE("a word wider than a row begins where it stands") {
  CHECK(fold("A  abcdefghijklmnop", 8, "  ") == "A  abcde\n  fghijk\n  lmnop");
  CHECK(fold("12345678 abcdefghijk", 8, "  ") == "12345678\n  abcdef\n  ghijk");
}

TEST_CASE("wide and combining characters are not torn") {
  // Two columns each, three of them in a row of seven.
  CHECK(fold("日本語日本語", 7, " ") == "日本語\n 日本語");
  const std::string e = "e\u0301";
  CHECK(fold(e + e + e + e + e, 4, "  ") == e + e + e + e + "\n " + e);
}

TEST_CASE("a colour ends with the row and is taken up again") {
  CHECK(fold("M  a  \x1b[31mdanger x: why\x1b[m  end", 16, "  ") ==
        "M  a  \x1b[31mdanger x:\x1b[m\n  \x1b[31mwhy\x1b[m  end");
}

TEST_CASE("no row is too wide and no row but the first is at the margin") {
  std::mt19937 random(7);
  const std::vector<std::string> parts = {
      " ",    "  ",      "a",          "word",  "longer-than-a-row/of/twelve",
      "日本", "e\u0301", "\x1b[1;31m", "\x1b[m"};
  for (int round = 0; round < 3000; ++round) {
    std::string line = "M";
    for (size_t n = random() % 30; n > 0; --n)
      line += parts[random() % parts.size()];
    const size_t columns = 1 + random() % 30;
    const std::string folded = fold(line, columns, "      ");
    INFO(line << "\n--- at " << columns << "\n" << folded);
    CHECK(letters(without_colors(folded)) == letters(without_colors(line)));
    const std::string shown = without_colors(folded);
    auto rows = split(shown, '\n');
    for (size_t i = 0; i < rows.size(); ++i) {
      if (columns > 1 || i == 0) CHECK(display_width(rows[i]) <= columns + 1);
      if (columns >= 8) CHECK(display_width(rows[i]) <= columns);
      if (columns >= 4 && i > 0) CHECK(rows[i].starts_with(' '));
    }
  }
}

TEST_CASE("sentences are broken at blanks and what is typed stays whole") {
  CHECK(fold_prose("hint: say `a b c` then", 12) ==
        "hint: say\n  `a b c`\n  then");
  CHECK(fold_prose("short", 12) == "short");
  CHECK(fold_prose("a path/that/is/longer/than/the/row b", 10) ==
        "a\n  path/that/is/longer/than/the/row\n  b");
  CHECK(fold_prose("one two three\nfour five six", 9) ==
        "one two\n  three\nfour five\n  six");
  CHECK(fold_prose("a ` that never ends", 8) == "a ` that\n  never\n  ends");
}
