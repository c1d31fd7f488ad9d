// SPDX-License-Identifier: Apache-2.0
#include "cli/review_looked.h"

#include "catch_shim.h"
#include "review_fixture.h"

using namespace stoplog;
using namespace stoplog::cli;
using namespace stoplog::cli::test;

TEST_CASE("looked: a record survives printing and parsing") {
  diff::Change change = modified("a", lines(60), lines(60, {5, 30}));
  LoadedFile file = load_file(change);
  Looked looked;
  CHECK(looked.at(change) == Look::kNever);
  looked.mark(change, &*file.text);
  Looked again = Looked::parse(looked.print());
  CHECK(again.at(change) == Look::kSame);
  CHECK(again.has_edit(change, *file.text, 0));
  CHECK(again.print() == looked.print());
}

TEST_CASE("looked: content mode and risks each make a change new") {
  diff::Change change = modified("a", "1\n", "2\n");
  Looked looked;
  looked.mark(change, nullptr);
  CHECK(looked.at(modified("a", "1\n", "3\n")) == Look::kChanged);
  CHECK(looked.at(modified("a", "0\n", "2\n")) == Look::kChanged);
  CHECK(looked.at(dangerous(change)) == Look::kChanged);
  diff::Change mode = change;
  mode.after->mode = 04755;
  CHECK(looked.at(mode) == Look::kChanged);
  diff::Change moved = change;
  moved.path = *RelPath::parse("b");
  CHECK(looked.at(moved) == Look::kNever);
}

TEST_CASE("looked: a damaged record counts as none") {
  Looked looked;
  looked.mark(added("a", "1\n"), nullptr);
  std::string text = looked.print();
  for (size_t i = 0; i + 1 < text.size(); i++) {
    std::string bad = text;
    bad[i] = static_cast<char>(bad[i] ^ 1);
    INFO(i);
    CHECK(Looked::parse(bad).size() == 0);
  }
  for (size_t n = 0; n + 1 < text.size(); n++)
    CHECK(Looked::parse(text.substr(0, n)).size() == 0);
  CHECK(Looked::parse("").size() == 0);
  CHECK(Looked::parse(std::string(100, '\0')).size() == 0);
}

TEST_CASE("looked: what is no longer changed is forgotten") {
  Looked looked;
  looked.mark(added("a", "1\n"), nullptr);
  looked.mark(added("b", "1\n"), nullptr);
  diff::ChangeSet set{.changes = {added("b", "2\n")}};
  looked.keep_only(set);
  CHECK(looked.size() == 1);
  CHECK(looked.at(set.changes[0]) == Look::kChanged);
}
