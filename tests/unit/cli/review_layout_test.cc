// SPDX-License-Identifier: Apache-2.0
#include "cli/review_layout.h"

#include "base/escape.h"
#include "base/strings.h"
#include "catch_shim.h"
#include "cli/review_wait.h"
#include "review_fixture.h"

using namespace stoplog;
using namespace stoplog::cli;
using namespace stoplog::cli::test;

namespace {

std::vector<diff::Change> sample() {
  diff::Change hook = dangerous(added(".git/hooks/pre-commit", "rm -rf ~\n"));
  hook.command = 4;
  hook.lines_added = 1;
  hook.lines_deleted = 0;
  diff::Change text =
      modified("src/main.c", lines(9), lines(9, {5}, "wide 日本 e\xcc\x81"));
  text.lines_added = text.lines_deleted = 1;
  return {hook, deleted("old.txt", "bye\n"), text};
}

void check_fits(const Frame& frame, int columns, int rows) {
  REQUIRE(frame.rows.size() == static_cast<size_t>(rows));
  int wrong = 0;
  for (const auto& row : frame.rows)
    for (const Span& span : row) {
      wrong += span.column < 0 ||
               static_cast<size_t>(span.column) + display_width(span.text) >
                   static_cast<size_t>(columns);
      for (char c : span.text)
        wrong += static_cast<unsigned char>(c) < ' ' || c == 127;
    }
  CHECK(wrong == 0);
}

}  // namespace

TEST_CASE("layout: the screen at 80 by 24") {
  Review r(sample());
  r.model.resize(80, 24);
  std::string screen = r.screen();
  std::vector<std::string_view> rows = split(screen, '\n');
  CHECK(
      rows[0] ==
      " review calm-otter                          3 of 3 undecided, 1 danger "
      "not seen");
  CHECK(rows[1] ==
        "▸ ! A …hooks/pre-commit +1 -0 #4│.git/hooks/pre-commit"
        "                 undecided");
  CHECK(
      rows[2] ==
      "    D old.txt                   │DANGER git-hook: runs on your machine");
  CHECK(rows[23].starts_with("y approve  x reject"));
}

TEST_CASE("layout: every size fits exactly") {
  Review r(sample());
  for (int columns : {1, 2, 5, 10, 20, 39, 71, 72, 80, 133, 400})
    for (int rows : {1, 2, 3, 4, 5, 10, 24, 100}) {
      INFO(columns << "x" << rows);
      r.model.resize(columns, rows);
      for (std::string_view keys :
           {"", "?", "\x1b", "]]", "/abc", "\x1b", "xwhy", "\x1b", "i", "\x1b",
            "\t", "\t", "lll", "hhhh", "["}) {
        r.press(keys);
        check_fits(layout(r.model, {}), columns, rows);
        check_fits(layout(r.model, {.ascii = true}), columns, rows);
      }
    }
}

TEST_CASE("layout: nothing hostile reaches the frame") {
  std::string evil = "a\x1b]0;title\x07\x1b[2J\r\xff\xe2\x80\xae";
  diff::Change change =
      modified("evil\x1b[2J\n\xff", lines(9), lines(9, {5}, evil));
  change.risks.push_back({diff::Level::kWarn, "x", evil});
  change.drift = evil;
  Review r({change});
  r.press("x");
  r.press(evil);
  r.model.press(key::kEnter);
  for (int columns : {30, 100}) {
    r.model.resize(columns, 24);
    check_fits(layout(r.model, {}), columns, 24);
    CHECK(is_utf8(r.screen()));
  }
  r.press("i");
  check_fits(layout(r.model, {}), 100, 24);
}

TEST_CASE("layout: decisions show in the list and at the hunk") {
  Review r(sample());
  r.press("y");
  r.press("x");
  r.press("needed\n");
  std::string screen = r.screen();
  CHECK(screen.find("✓! A") != std::string::npos);
  CHECK(screen.find("✗  D old.txt") != std::string::npos);
  CHECK(screen.find("+wide 日本 e\xcc\x81 5") != std::string::npos);
  r.press("y");
  CHECK(r.screen().find("approved") != std::string::npos);
  r.press("[");
  CHECK(r.screen().find("rejected because: needed") != std::string::npos);
  Frame ascii = layout(r.model, {.ascii = true});
  CHECK(to_text(ascii).find("y! A") != std::string::npos);
  CHECK(to_text(ascii).find("x  D old.txt") != std::string::npos);
}

TEST_CASE("layout: a long line is marked and can be scrolled to its end") {
  Review r({modified("f", "a\n", std::string(90, 'x') + "END\n")});
  CHECK(r.screen().find("END") == std::string::npos);
  CHECK(r.screen().find("x…") != std::string::npos);
  r.press("lll");
  CHECK(r.screen().find("END") != std::string::npos);
  CHECK(r.screen().find("x…") == std::string::npos);
}

TEST_CASE("layout: a narrow screen shows one pane and Tab changes it") {
  Review r(sample());
  r.model.resize(40, 10);
  CHECK(r.screen().find("old.txt") == std::string::npos);
  CHECK(r.screen().find("DANGER git-hook") != std::string::npos);
  r.press("\t");
  CHECK(r.screen().find("old.txt") != std::string::npos);
  CHECK(r.screen().find("DANGER git-hook") == std::string::npos);
  r.press("j\n");
  CHECK(r.path() == "old.txt");
  CHECK(r.screen().find("-bye") != std::string::npos);
}

TEST_CASE("layout: a question shows what answers it however narrow") {
  Review r({modified("f", "a\n", "b\n"), modified("g", "a\n", "b\n")});
  r.press("yc");
  REQUIRE(r.model.mode() == Mode::kConfirm);
  for (int columns : {100, 34, 30, 20, 8}) {
    r.model.resize(columns, 10);
    INFO(columns);
    CHECK(r.screen().find("? y/n") != std::string::npos);
  }
}

TEST_CASE("layout: a text without a last newline says so") {
  Review r({modified("f", "a\n", "a")});
  CHECK(r.screen().find("\\ no newline at end of file") != std::string::npos);
}

TEST_CASE("layout: the cursor stands behind what is typed") {
  Review r(sample());
  r.press("/ab");
  Frame frame = layout(r.model, {});
  REQUIRE(frame.cursor);
  CHECK(frame.cursor->column == 3);
  CHECK(frame.cursor->row == 23);
}

TEST_CASE("layout: the screen of a wait fits every size and obeys nothing") {
  for (int columns : {0, 1, 8, 80, 300})
    for (int rows : {0, 1, 2, 3, 24}) {
      CAPTURE(columns, rows);
      Frame frame = waiting_frame("a\x1b[2J\xff", 12, 100000, columns, rows);
      CHECK(frame.rows.size() == static_cast<size_t>(rows));
      for (const auto& row : frame.rows)
        for (const Span& span : row) {
          CHECK(display_width(span.text) <= static_cast<size_t>(columns));
          CHECK(span.text.find('\x1b') == std::string::npos);
        }
    }
  Frame frame = waiting_frame("draft", 12, 100, 80, 24);
  CHECK(frame.rows[2][0].text == "  looking at 12 of 100 changes");
}
