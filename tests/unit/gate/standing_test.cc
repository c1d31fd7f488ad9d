// SPDX-License-Identifier: Apache-2.0
#include "gate/standing.h"

#include "gate/decide.h"
#include "tree_fixture.h"

using namespace stoplog;
using namespace stoplog::gate;
using namespace stoplog::gate::test;

namespace {
RelPath path(std::string_view text) { return *RelPath::parse(text); }
}  // namespace

TEST_CASE("a mode says whether a commit may be") {
  CHECK(*parse_mode("auto") == Mode::kAuto);
  CHECK(!parse_mode("Gated"));
  CHECK(may_commit(Mode::kGated));
  CHECK(may_commit(Mode::kAuto));
  CHECK(may_commit(Mode::kHold).error().code() == Code::kRefused);
  CHECK(may_commit(Mode::kObserve).error().code() == Code::kRefused);
}

TEST_CASE("a standing approval takes what its glob covers and no danger") {
  Site site;
  put(site.ws + "/docs/gone.md", "git does not have this\n");
  site.branch();
  put(site.draft + "/docs/a.md", "a\n");
  put(site.draft + "/src/b.c", "b\n");
  put(site.draft + "/docs/ask.md", "b\n");
  std::filesystem::remove(site.draft + "/docs/gone.md");
  auto view = fs::view_of_directories(site.root.get(), site.side.get());
  diff::DiffOptions options;
  options.rules = always_ask_rules({"docs/ask.md"});
  auto set = std::move(*diff::build_change_set(*view, options));
  Plan plan;
  auto paths = approve_standing(plan, set, {"docs/**"}, {});
  REQUIRE(paths);
  CHECK(*paths == std::vector{path("docs/a.md")});
  CHECK(plan.find(path("docs/a.md"))->standing);
  CHECK(!plan.find(path("docs/a.md"))->confirmed);
  // What a person rejected stays rejected.
  Plan other;
  RejectRequest no{.paths = {path("docs/a.md")}, .reason = "no", .by = {}};
  REQUIRE(reject(other, set, no));
  CHECK(approve_standing(other, set, {"docs/**"}, {})->empty());
  CHECK(!approve_standing(plan, set, {"[broken"}, {}));
  // Once is enough; and what the policy no longer says no longer stands.
  CHECK(approve_standing(plan, set, {"docs/**"}, {})->empty());
  CHECK(plan.find(path("docs/a.md")) != nullptr);
  CHECK(approve_standing(plan, set, {}, {})->empty());
  CHECK(plan.find(path("docs/a.md")) == nullptr);
}

TEST_CASE("an approval grows old") {
  Plan plan;
  Decision decision;
  decision.path = path("a");
  decision.by.time = {1000, 0};
  plan.set(decision);
  CHECK(check_age(plan, {1050, 0}, std::chrono::seconds(60)));
  auto old = check_age(plan, {1100, 0}, std::chrono::seconds(60));
  REQUIRE(!old);
  CHECK(old.error().code() == Code::kDrift);
  // A rejection does not grow old, and neither does the policy's word.
  decision.standing = true;
  plan.set(decision);
  CHECK(check_age(plan, {1100, 0}, std::chrono::seconds(60)));
  decision.standing = false;
  decision.verdict = Verdict::kRejected;
  plan.set(decision);
  CHECK(check_age(plan, {1100, 0}, std::chrono::seconds(60)));
}
