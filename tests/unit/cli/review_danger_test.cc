// SPDX-License-Identifier: Apache-2.0
// Dangers in the review: what counts as seen, and the way to them.
#include "catch_shim.h"
#include "cli/review_model.h"
#include "review_fixture.h"

using namespace stoplog;
using namespace stoplog::cli;
using namespace stoplog::cli::test;

TEST_CASE("review: commit is closed while a danger has not been seen") {
  Review r({added("a", "x\n"), dangerous(added("b", "y\n")),
            dangerous(added("c", "z\n"))});
  r.model.shown();  // b
  r.press("y");
  CHECK(r.path() == "c");
  CHECK(r.model.unseen_dangers() == 1);
  r.press("]c");
  CHECK(r.model.mode() == Mode::kBrowse);
  CHECK(r.model.status().find("danger not seen: c") != std::string::npos);
  r.press("!");
  CHECK(r.path() == "c");
  r.press("c");
  CHECK(r.model.mode() == Mode::kBrowse);  // still not drawn
  r.model.shown();
  r.press("c");
  CHECK(r.model.mode() == Mode::kConfirm);
  r.press("n");
  CHECK(r.model.take_wish() == Wish::kNone);
  CHECK(r.model.status() == "not committed");
  r.press("cy");
  CHECK(r.model.take_wish() == Wish::kCommit);
  CHECK(r.model.take_wish() == Wish::kNone);
}

TEST_CASE("review: a danger is not seen while only the list is shown") {
  Review r({dangerous(added("b", "y\n"))});
  r.model.resize(40, 10);
  r.press("\t");
  r.model.shown();
  CHECK(r.model.unseen_dangers() == 1);
  r.press("\t?");
  r.model.shown();
  CHECK(r.model.unseen_dangers() == 1);
  r.press("z");
  r.model.shown();
  CHECK(r.model.unseen_dangers() == 0);
}

TEST_CASE("review: a danger is not seen while what is said of it is not") {
  diff::Change change =
      dangerous(modified("b", lines(90), lines(90, {3, 80}, "found")));
  Review r({added("a", "x\n"), change});
  r.press("[");
  // A search leads into the middle of the file.
  r.press("/found 80\n");
  while (r.model.busy()) r.model.poll();
  CHECK(r.here() == "+found 80");
  r.press("ll");
  r.model.resize(100, 8);
  r.model.shown();
  CHECK(r.screen().find("DANGER") == std::string::npos);
  CHECK(r.model.unseen_dangers() == 1);
  r.press("g");
  // Nor where there is no room for it.
  r.model.resize(80, 1);
  r.model.shown();
  CHECK(r.model.unseen_dangers() == 1);
  r.model.resize(80, 2);
  r.model.shown();
  CHECK(r.screen().find("DANGER") != std::string::npos);
  CHECK(r.model.unseen_dangers() == 0);
}

TEST_CASE("review: n to a file with a long hunk leaves its danger in view") {
  Review r({added("a", "x\n"), dangerous(added("b", lines(400)))});
  r.press("]");  // dangers stand first
  CHECK(r.path() == "a");
  CHECK(r.model.unseen_dangers() == 1);
  r.press("y");  // and to what is undecided
  CHECK(r.path() == "b");
  CHECK(r.here() == "@@");
  r.model.shown();
  CHECK(r.screen().find("DANGER") != std::string::npos);
  CHECK(r.model.unseen_dangers() == 0);
}

TEST_CASE("review: the key for dangers leads to the line that is one") {
  diff::Change change =
      dangerous(modified("b", lines(400), lines(400, {3, 250, 390}, "found")));
  change.risks.push_back({diff::Level::kDanger, "secret", "adds a key", 250});
  change.risks.push_back({diff::Level::kWarn, "bidi", "hidden", 390});
  Review r({change, dangerous(added("c", "x\n"))});
  CHECK(r.path() == "b");
  r.model.shown();
  r.press("!");
  CHECK(r.here() == "+found 250");
  CHECK(r.screen().find("found 250") != std::string::npos);
  // A line that only warns is passed over.
  r.press("!");
  CHECK(r.path() == "c");
  r.model.shown();
  r.press("!");
  CHECK(r.path() == "b");
  r.press("{{}}!");
  CHECK(r.here() == "+found 250");
}

TEST_CASE("review: before its line a danger itself is shown") {
  diff::Change change =
      dangerous(modified("b", lines(400), lines(400, {3, 250, 390}, "found")));
  change.risks.push_back({diff::Level::kDanger, "secret", "adds a key", 250});
  Review r({change});
  r.press("JJJ");
  REQUIRE(r.screen().find("DANGER") == std::string::npos);
  r.press("!");
  CHECK(r.screen().find("DANGER") != std::string::npos);
  r.press("!");
  CHECK(r.here() == "+found 250");
}
