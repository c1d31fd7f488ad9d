// SPDX-License-Identifier: Apache-2.0
#include "cli/review_text.h"

#include "base/escape.h"
#include "catch_shim.h"

using namespace stoplog;
using namespace stoplog::cli;

TEST_CASE("slice: plain text is cut at the edge and says so") {
  CHECK(slice("hello\n", 0, 10).text == "hello");
  CHECK_FALSE(slice("hello\n", 0, 5).more);
  Piece cut = slice("hello", 0, 4);
  CHECK(cut.text == "hell");
  CHECK(cut.more);
  CHECK(slice("hello", 2, 10).text == "llo");
  CHECK(slice("hello", 9, 10).text.empty());
}

TEST_CASE("slice: tabs go to the next stop from any offset") {
  CHECK(slice("a\tb", 0, 20).text == "a       b");
  CHECK(slice("a\tb", 4, 20).text == "    b");
  CHECK(slice("\t\tx", 0, 12).text == std::string(12, ' '));
}

TEST_CASE("slice: a wide character is never cut in half") {
  CHECK(slice("a日本", 0, 2).text == "a");
  CHECK(slice("a日本", 0, 3).text == "a日");
  CHECK(slice("日本", 1, 3).text == " 本");
  CHECK(slice("日本", 1, 2).text == " ");
  for (size_t from = 0; from < 12; from++)
    for (size_t width = 0; width < 12; width++) {
      Piece piece = slice("a日\t本e\xcc\x81\x1b[2Jz", from, width);
      CHECK(display_width(piece.text) == piece.width);
      CHECK(piece.width <= width);
    }
}

TEST_CASE("slice: combining marks stay with their column and are bounded") {
  CHECK(slice("e\xcc\x81x", 0, 1).text == "e\xcc\x81");
  CHECK(slice("e\xcc\x81x", 1, 1).text == "x");
  std::string tower = "e";
  for (int i = 0; i < 1000; i++) tower += "\xcc\x81";
  CHECK(slice(tower, 0, 5).text.size() == 1 + 4 * 2);
  CHECK(slice("\xcc\x81", 0, 5).text.empty());
}

TEST_CASE("slice: nothing that moves a cursor comes through") {
  std::string out = slice("a\x1b[31m\r\x07\xff\xe2\x80\xae z", 0, 80).text;
  CHECK(out.find('\x1b') == std::string::npos);
  CHECK(out.find('\r') == std::string::npos);
  CHECK(out == "a^[[31m^M^G\\xff<U+202E> z");
}

TEST_CASE("slice: a huge line costs what is shown of it") {
  std::string huge(8 << 20, 'x');
  for (int i = 0; i < 1000; i++) CHECK(slice(huge, 100, 50).width == 50);
}

TEST_CASE("wrap: sentences break at blanks and long words anywhere") {
  CHECK(wrap("one two three", 7) ==
        std::vector<std::string>{"one two", "three"});
  CHECK(wrap("abcdefgh", 3) == std::vector<std::string>{"abc", "def", "gh"});
  CHECK(wrap("", 3) == std::vector<std::string>{""});
  CHECK(wrap("a\x1bz", 10) == std::vector<std::string>{"a^[z"});
  CHECK(wrap("日本語", 1).size() == 1);
  for (size_t width = 1; width < 20; width++)
    for (const std::string& row : wrap("the quick 日本 brown\tfox", width))
      CHECK(display_width(row) <= width);
}

TEST_CASE("matches: case counts only with a capital in the pattern") {
  CHECK(matches("Hello World", "world"));
  CHECK(matches("Hello World", "World"));
  CHECK_FALSE(matches("hello world", "World"));
  CHECK_FALSE(matches("x", ""));
  CHECK(matches("größe", "ße"));
}
