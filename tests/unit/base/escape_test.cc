// SPDX-License-Identifier: Apache-2.0
#include "base/escape.h"

#include "catch_shim.h"

using namespace stoplog;

TEST_CASE("escape leaves ordinary text of any language alone") {
  for (const char* text :
       {"", "a b.c", "größe", "日本語", "עברית", "👍", "❤️", "e\u0301"})
    CHECK(escape(text) == text);
}

TEST_CASE("escape shows controls and what would reorder or hide text") {
  CHECK(escape("a\x1b[2Kb") == "a^[[2Kb");
  CHECK(escape("a\rb\x7f") == "a^Mb^?");
  CHECK(escape(std::string_view("a\0b", 3)) == "a^@b");
  CHECK(escape("\u009b31m") == "<U+009B>31m");
  CHECK(escape("\u202eevil\u2069") == "<U+202E>evil<U+2069>");
  CHECK(escape("a\u200bb\ufeff") == "a<U+200B>b<U+FEFF>");
  CHECK(escape("a\u2028b") == "a<U+2028>b");
  CHECK(escape("\U000e0041") == "<U+E0041>");
  CHECK(escape("a\ufe0f") == "a<U+FE0F>");
}

TEST_CASE("escape shows bytes that are not UTF-8 and leaves valid UTF-8") {
  CHECK(escape("\xff\xfe") == "\\xff\\xfe");
  CHECK(escape("\xc0\xaf") == "\\xc0\\xaf");           // not shortest form
  CHECK(escape("\xed\xa0\x80") == "\\xed\\xa0\\x80");  // a surrogate
  CHECK(escape("\xe2\x82") == "\\xe2\\x82");           // cut off
  CHECK(escape("\xf4\x90\x80\x80") == "\\xf4\\x90\\x80\\x80");
  for (int a = 0; a < 256; ++a)
    for (int b = 0; b < 256; ++b) {
      std::string bytes = {static_cast<char>(a), static_cast<char>(b)};
      std::string shown = escape(bytes);
      REQUIRE(is_utf8(shown));
      std::string_view rest = shown;
      while (!rest.empty())
        REQUIRE(kind_of(take_utf8(rest).c) == CharKind::kPlain);
    }
}

TEST_CASE("escape keeps tab and newline only where asked") {
  CHECK(escape("a\tb\n") == "a^Ib^J");
  CHECK(escape("a\tb\n", Escape::kLine) == "a\tb^J");
  CHECK(escape("a\tb\n\r", Escape::kText) == "a\tb\n^M");
}

TEST_CASE("quote_name quotes as git does and can be taken back") {
  CHECK(quote_name("plain name.c") == "plain name.c");
  CHECK(quote_name("a\tb\303\251") == "\"a\\tb\\303\\251\"");
  CHECK(quote_name("q\"b\\s") == "\"q\\\"b\\\\s\"");
  CHECK(quote_name("\x1b\x7f") == "\"\\033\\177\"");
  std::string all;
  for (int c = 1; c < 256; ++c) all += static_cast<char>(c);
  CHECK(unquote_name(quote_name(all)).value() == all);
  CHECK(unquote_name("as it is").value() == "as it is");
  for (const char* bad : {"\"", "\"a", "\"\\", "\"\\9\"", "\"\\01\"",
                          "\"\\08x\"", "\"a\"b", "\"\\q\""})
    CHECK_FALSE(unquote_name(bad));
}

TEST_CASE("display width counts wide and combining characters") {
  CHECK(display_width("abc") == 3);
  CHECK(display_width("日本") == 4);
  CHECK(display_width("e\u0301") == 1);
  CHECK(display_width("👍") == 2);
  CHECK(width_of(0x3042) == 2);
  CHECK(width_of(0xff21) == 2);
  CHECK(width_of(0x378) == 1);
}

TEST_CASE("fit never takes more columns than it was given") {
  CHECK(fit("abcdef", 6) == "abcdef");
  CHECK(fit("abcdef", 4) == "abc…");
  CHECK(fit("src/long/name.c", 8, Cut::kStart) == "…/name.c");
  CHECK(fit("日本語", 4) == "日…");
  CHECK(fit("日本語", 4, Cut::kStart) == "…語");
  CHECK(fit("abc", 0).empty());
  for (size_t columns = 0; columns < 12; ++columns)
    for (Cut cut : {Cut::kEnd, Cut::kStart})
      CHECK(display_width(fit("a日e\u0301本b語cde", columns, cut)) <= columns);
}
