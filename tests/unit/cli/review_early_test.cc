// SPDX-License-Identifier: Apache-2.0
// The list before contents are known, and how it becomes the review.
#include "catch_shim.h"
#include "review_fixture.h"

using namespace stoplog;
using namespace stoplog::cli;
using namespace stoplog::cli::test;

namespace {

// As it is known before anything was read.
diff::Change supposed(diff::Change change) {
  change.old_sha256.reset();
  change.new_sha256.reset();
  change.risks.clear();
  return change;
}

std::vector<diff::Change> many(size_t count) {
  std::vector<diff::Change> changes;
  for (size_t i = 0; i < count; i++)
    changes.push_back(
        modified(fmt::format("f{:03}", i), lines(60), lines(60, {5, 30, 50})));
  return changes;
}

std::vector<diff::Change> supposed(const std::vector<diff::Change>& changes) {
  std::vector<diff::Change> out;
  for (const diff::Change& change : changes) out.push_back(supposed(change));
  return out;
}

// The row of the screen that has the list's arrow.
size_t row_of_arrow(const Review& r) {
  std::string screen = r.screen();
  size_t at = screen.find("▸");
  REQUIRE(at != std::string::npos);
  return static_cast<size_t>(
      std::count(screen.begin(), screen.begin() + static_cast<long>(at), '\n'));
}

}  // namespace

TEST_CASE("review: what is not looked at yet can be read and not decided") {
  Review r(supposed(many(3)), {}, Early::kYes);
  r.model.set_progress(1, 3);
  CHECK(r.screen().find("looking at 1 of 3 changes") != std::string::npos);
  CHECK(r.screen().find("undecided") == std::string::npos);
  for (char key : std::string("yxaduUcw")) {
    r.press(std::string(1, key));
    INFO(key);
    CHECK(r.model.mode() == Mode::kBrowse);
    CHECK(r.model.status().find("1 of 3 so far") != std::string::npos);
  }
  CHECK(r.model.undecided() == 3);
  CHECK_FALSE(r.model.take_dirty());
  r.press("J]J");
  CHECK(r.path() == "f001");
  CHECK(*r.model.current_hunk() == 1);
  r.press("/changed 50\n");
  CHECK(r.here() == "+changed 50");
}

TEST_CASE("review: nothing is seen before all of it is known") {
  std::vector<diff::Change> changes = many(2);
  Review early(supposed(changes), {}, Early::kYes);
  early.model.shown();
  CHECK_FALSE(early.model.items()[0].seen);
  CHECK(early.model.looked().size() == 0);
  changes[0] = dangerous(changes[0]);
  Review r(changes);
  r.model.go_on_from(early.model);
  CHECK(r.model.unseen_dangers() == 1);
}

TEST_CASE("review: dangers that arrive do not move the line being read") {
  std::vector<diff::Change> changes = many(100);
  Review early(supposed(changes), {}, Early::kYes);
  early.press("\t");
  for (int i = 0; i < 40; i++) early.press("j");
  early.press("\tJj");
  REQUIRE(early.path() == "f040");
  std::string line = early.here();
  size_t row = row_of_arrow(early);
  size_t down = early.model.open().cursor - early.model.open().top;
  for (size_t i : {3u, 60u, 70u}) changes[i] = dangerous(changes[i]);
  changes.erase(changes.begin() + 20);  // the same content after all
  Review r(changes);
  r.model.go_on_from(early.model);
  CHECK(r.path() == "f040");
  CHECK(r.here() == line);
  CHECK(*r.model.current_hunk() == *early.model.current_hunk());
  CHECK(row_of_arrow(r) == row);
  CHECK(r.model.open().cursor - r.model.open().top == down);
  CHECK(r.model.status().find("3 dangers; ! goes there") != std::string::npos);
  r.press("c");
  CHECK(r.model.status().find("commit is closed") != std::string::npos);
  r.press("!");
  CHECK(r.path() == "f003");
}

TEST_CASE("review: what is typed goes on when contents are known") {
  std::vector<diff::Change> changes = many(5);
  Review early(supposed(changes), {}, Early::kYes);
  early.press("]}/chan");
  Review r(changes);
  r.model.go_on_from(early.model);
  CHECK(r.model.mode() == Mode::kSearch);
  CHECK(r.model.entry() == "chan");
  CHECK(r.model.context() == 4);
  CHECK(r.path() == "f001");
  r.press("ged 30\n");
  CHECK(r.here() == "+changed 30");
}

TEST_CASE("review: a file that did not change after all is said to be none") {
  std::vector<diff::Change> changes = many(5);
  Review early(supposed(changes), {}, Early::kYes);
  early.press("]]");
  changes.erase(changes.begin() + 2);
  Review r(changes);
  r.model.go_on_from(early.model);
  CHECK(r.path() == "f003");
  CHECK(r.model.status() == "not changed after all: f002");
  Review none({});
  none.model.go_on_from(early.model);
  CHECK(none.model.empty());
}

TEST_CASE("review: a binary file that is not looked at yet is no text") {
  diff::Change change =
      supposed(modified("f", std::string("a\0b", 3), std::string("a\0c", 3)));
  LoadedFile file = load_file(change);
  CHECK_FALSE(file.text);
  REQUIRE_FALSE(file.notes.empty());
  CHECK(file.notes[0] == "binary: decided as a whole");
  file = load_file(supposed(modified("f", "x\n", "x\n")));
  REQUIRE_FALSE(file.notes.empty());
  CHECK(file.notes[0] == "the same content on both sides");
}
