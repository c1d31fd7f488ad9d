// SPDX-License-Identifier: Apache-2.0
#include "cli/review_words.h"

#include "base/escape.h"
#include "catch_shim.h"
#include "review_fixture.h"

using namespace stoplog;
using namespace stoplog::cli;
using namespace stoplog::cli::test;

namespace {

std::string part(std::string_view line, std::string_view other) {
  auto range = changed_part(line, other);
  return range
             ? std::string(line.substr(range->begin, range->end - range->begin))
             : "-";
}

}  // namespace

TEST_CASE("words that differ: what is between the same beginning and end") {
  CHECK(part("return 0;\n", "return 12;\n") == "0");
  CHECK(part("return 12;\n", "return 0;\n") == "12");
  // Out to whole words.
  CHECK(part("int colour = 1;", "int color = 1;") == "colour");
  CHECK(part("int color = 1;", "int colour = 1;") == "color");
  CHECK(part("f(a, b)", "f(a)") == ", b");
  CHECK(part("f(a)", "f(a, b)") == "-");
  CHECK(part("x = 1", "x = 1\r") == "-");
  CHECK(part("x = 1\r", "x = 1") == "\r");
  // Nothing is the same but the indentation, or everything is.
  CHECK(part("  one", "  two!") == "-");
  CHECK(part("same\n", "same") == "-");
  CHECK(part("", "") == "-");
  CHECK(part("abc", "") == "-");
  // A beginning that is also the end.
  CHECK(part("aa aa", "aa aa aa") == "-");
  CHECK(part("aa aa aa", "aa aa") == " aa");
  CHECK(part(std::string(5000, 'x') + "a b", std::string(5000, 'x') + "a c") ==
        "-");
}

TEST_CASE("words that differ: no character is cut") {
  // Two that share their first byte; a base with other marks on it.
  CHECK(part("x é y", "x è y") == "é");
  CHECK(part("x e\xcc\x81 y", "x e\xcc\x80 y") == "e\xcc\x81");
  CHECK(part("x e\xcc\x81 y", "x e y") == "e\xcc\x81");
  CHECK(part("日本語", "日本人") == "語");
  // Bytes that are no UTF-8 are bytes.
  CHECK(is_utf8(part("x é\xff y", "x é\xfe y")) == false);
}

TEST_CASE("words that differ: lines that were replaced one for one") {
  auto lines = [](std::string_view origins) {
    std::vector<diff::Line> out;
    for (char origin : origins) out.push_back({origin, "text\n"});
    return out;
  };
  auto two = lines(" --++ ");
  CHECK(partner(two, 1) == 3u);
  CHECK(partner(two, 4) == 2u);
  CHECK_FALSE(partner(two, 0));
  CHECK_FALSE(partner(two, 5));
  auto uneven = lines("-++");
  CHECK_FALSE(partner(uneven, 0));
  CHECK_FALSE(partner(uneven, 2));
  CHECK_FALSE(partner(lines("++"), 1));
  CHECK_FALSE(partner(lines("--"), 0));
  CHECK_FALSE(partner(lines("- +"), 0));
  auto large = lines(std::string(5000, '-') + std::string(5000, '+'));
  CHECK_FALSE(partner(large, 2500));
  CHECK_FALSE(partner(large, 7500));
}

TEST_CASE("review: the words of a line that are other ones are marked") {
  Review r({modified("a.txt", "one two three\nx\n", "one 2\tthree\nx\n")});
  r.model.resize(100, 20);
  int marks = 0;
  Frame frame = layout(r.model, {});
  for (const auto& row : frame.rows)
    for (const Span& span : row) {
      if (!span.mark) continue;
      ++marks;
      CHECK((span.text == "two " || span.text == "two" || span.text[0] == '2'));
      CHECK((span.ink == Ink::kAdded || span.ink == Ink::kRemoved));
    }
  CHECK(marks == 2);
}

TEST_CASE(
    "a line of approve -p is escaped and its other words are underlined") {
  std::vector<diff::Line> lines = {
      {'-', "a = 1;\x1b[2J\n"}, {'+', "a = 2;\x1b[2J\n"}, {' ', "same"}};
  CHECK(shown_line(lines, 0, false) == "-a = 1;^[[2J");
  CHECK(shown_line(lines, 1, true) ==
        "\x1b[32m+a = \x1b[1;4m2\x1b[22;24m;^[[2J\x1b[m");
  CHECK(shown_line(lines, 0, true) ==
        "\x1b[31m-a = \x1b[1;4m1\x1b[22;24m;^[[2J\x1b[m");
  CHECK(shown_line(lines, 2, true) == " same");
  lines[1].text = "other\n";
  CHECK(shown_line(lines, 1, true) == "\x1b[32m+other\x1b[m");
}
