// SPDX-License-Identifier: Apache-2.0
#include "draft/held_drift.h"

#include "catch_shim.h"

using namespace stoplog;
using namespace stoplog::draft;

namespace {

fs::DriftNote note(const std::string& path) {
  fs::DriftNote out;
  out.path = out.origin = RelPath::parse(path).value();
  return out;
}

fs::BaseChange change(const std::string& path) {
  fs::BaseChange out;
  out.path = RelPath::parse(path).value();
  return out;
}

}  // namespace

TEST_CASE("drift is told at once unless a commit is due") {
  HeldDrift held;
  CHECK(held.noted(note("a")).size() == 1);
  CHECK(held.marked().empty());
  CHECK(held.noted(note("a")).size() == 1);
}

TEST_CASE("what a commit changed itself is not told as drift") {
  HeldDrift held;
  held.commit_due();
  CHECK(held.marked().empty());  // the commit's own barrier
  CHECK(held.noted(note("mine")).empty());
  CHECK(held.noted(note("others")).empty());
  auto told = held.committed({change("mine"), change("more")});
  REQUIRE(told.size() == 1);
  CHECK(told[0].path.str() == "others");
  CHECK(held.noted(note("later")).size() == 1);
}

TEST_CASE("drift during a commit that was refused is told by the next look") {
  HeldDrift held;
  held.commit_due();
  CHECK(held.marked().empty());
  CHECK(held.noted(note("a")).empty());
  CHECK(held.marked().size() == 1);
  CHECK(held.marked().empty());
  CHECK(held.noted(note("b")).size() == 1);
  held.commit_due();
  CHECK(held.noted(note("c")).empty());
  CHECK(held.all().size() == 1);
}
