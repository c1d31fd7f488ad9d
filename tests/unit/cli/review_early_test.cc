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

// Finds in `changes` what one of them is when it is looked at; what is not
// there did not change.
LookAtOne look_in(const std::vector<diff::Change>& changes) {
  return
      [changes](
          const diff::Change& change) -> Result<std::optional<diff::Change>> {
        for (const diff::Change& known : changes)
          if (known.path == change.path) return known;
        return std::nullopt;
      };
}

// Over what is known early of `changes`, each of which can be looked at.
struct EarlyReview : Review {
  explicit EarlyReview(const std::vector<diff::Change>& changes,
                       Looked looked = {})
      : Review(supposed(changes), std::move(looked), Early::kYes,
               look_in(changes)) {}
};

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
  for (char key : std::string("yxadcw")) {
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

TEST_CASE("review: a file that was looked at is decided before the others") {
  std::vector<diff::Change> changes = many(3);
  EarlyReview early(changes);
  early.model.set_progress(1, 3);
  CHECK(early.screen().find("undecided") != std::string::npos);
  CHECK(early.screen().find("when all was looked at") != std::string::npos);
  early.press("y");  // of three hunks
  CHECK(early.model.items()[0].summary.standing == Standing::kPartial);
  early.press("]a]xno\n");
  CHECK(early.model.items()[1].summary.standing == Standing::kApproved);
  CHECK(early.model.decided_early() == 3);
  early.press("c");
  CHECK(early.model.mode() == Mode::kBrowse);
  CHECK(early.model.status().find("1 of 3 so far") != std::string::npos);
  CHECK(early.store.saves() == 0);

  Review r(changes);
  CHECK(r.model.go_on_from(early.model) == 0);
  CHECK(r.model.take_dirty());
  CHECK(r.model.items()[0].summary.standing == Standing::kPartial);
  CHECK(r.model.items()[1].summary.standing == Standing::kApproved);
  CHECK(r.model.items()[2].summary.standing == Standing::kPartial);
  CHECK(r.model.approved() == 2);
  CHECK(r.model.undecided() == 2);
  FileDecision third = r.store.get(changes[2], &*r.files.get(2)->text);
  CHECK(third.reason == "no");
  CHECK(third.parts ==
        std::vector{Verdict::kRejected, Verdict::kNone, Verdict::kNone});
  // Undone one by one, to what was there before.
  r.press("uu");
  CHECK(r.path() == "f001");
  CHECK(r.model.items()[1].summary.standing == Standing::kNone);
  r.press("U");
  CHECK(r.model.items()[1].summary.standing == Standing::kApproved);
}

TEST_CASE("review: an approval does not reach a danger that was not shown") {
  std::vector<diff::Change> changes = many(4);
  EarlyReview early(changes);
  early.press("a");
  early.press("a");
  early.press("a");
  REQUIRE(early.model.decided_early() == 3);
  // All together tell more: a danger, and where it came from.
  std::vector<diff::Change> whole = changes;
  whole[1] = dangerous(whole[1]);
  whole[2].from = *RelPath::parse("elsewhere");
  whole[2].kind = diff::Kind::kRenamed;
  Review r(whole);
  CHECK(r.model.go_on_from(early.model) == 2);
  CHECK(r.model.approved() == 1);
  CHECK(r.model.unseen_dangers() == 1);
  CHECK(r.store.get(whole[1], nullptr).whole == Verdict::kNone);
  CHECK(r.store.get(whole[2], nullptr).whole == Verdict::kNone);
  CHECK(r.model.status() ==
        "2 files to be decided again: more is known of them now");
  r.press("c");
  CHECK(r.model.status().find("commit is closed") != std::string::npos);
}

TEST_CASE("review: a danger that was looked at early and shown is seen") {
  std::vector<diff::Change> changes = many(3);
  changes[1] = dangerous(changes[1]);
  EarlyReview early(changes);
  CHECK(early.model.unseen_dangers() == 0);  // not known yet
  early.press("]");
  CHECK(early.screen().find("DANGER git-hook") != std::string::npos);
  CHECK(early.model.unseen_dangers() == 1);
  early.model.shown();
  early.press("y");
  CHECK(early.model.unseen_dangers() == 0);
  Review r(changes);
  CHECK(r.model.go_on_from(early.model) == 0);
  CHECK(r.model.unseen_dangers() == 0);
  CHECK(r.model.looked().at(changes[1]) == Look::kSame);
  r.press("c");
  CHECK(r.model.mode() == Mode::kConfirm);
}

TEST_CASE("review: what turns out unchanged early is not to be decided") {
  std::vector<diff::Change> changes = many(3);
  changes[1] = modified("f001", lines(60), lines(60));
  Review early(supposed(changes), {}, Early::kYes,
               look_in({changes[0], changes[2]}));
  early.press("]y");
  CHECK(early.model.status() ==
        "not changed after all: there is nothing to decide");
  CHECK(early.model.decided_early() == 0);
  CHECK(early.model.undecided() == 2);
  early.press("n");
  CHECK(early.path() == "f002");
}

TEST_CASE("review: a reason that is typed while contents become known") {
  std::vector<diff::Change> changes = many(3);
  EarlyReview early(changes);
  early.press("dbecau");
  Review r(changes);
  r.model.go_on_from(early.model);
  r.press("se\n");
  CHECK(r.store.get(changes[0], nullptr).whole == Verdict::kRejected);
  CHECK(r.store.get(changes[0], nullptr).reason == "because");
  // Of a file that is not there: of no other one.
  Review others({changes[1], changes[2]});
  others.model.go_on_from(early.model);
  CHECK(others.model.mode() == Mode::kBrowse);
}

TEST_CASE("review: what was decided and taken back early is no decision") {
  std::vector<diff::Change> changes = many(2);
  EarlyReview early(changes);
  early.press("au");
  CHECK(early.model.decided_early() == 0);
  Review r(changes);
  CHECK(r.model.go_on_from(early.model) == 0);
  CHECK(r.model.approved() == 0);
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
