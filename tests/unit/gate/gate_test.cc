// SPDX-License-Identifier: Apache-2.0
// Committing what is approved of a change set.
#include "desk_fixture.h"
#include "gate/select_items.h"

using namespace stoplog;
using namespace stoplog::gate;
using namespace stoplog::gate::test;

TEST_CASE("what is approved is committed and the rest stays held") {
  Desk desk;
  put(desk.ws + "/a", "a\n");
  put(desk.ws + "/b", "b\n");
  desk.branch();
  put(desk.draft + "/a", "a2\n");
  put(desk.draft + "/b", "b2\n");
  put(desk.draft + "/src/new.txt", "new\n");
  desk.look();
  REQUIRE(desk.approve_paths({"a", "src"}));
  auto result = desk.commit_now();
  INFO((result ? "" : result.error().text()));
  REQUIRE(result);
  CHECK(get(desk.ws + "/a") == "a2\n");
  CHECK(get(desk.ws + "/b") == "b\n");
  CHECK(get(desk.ws + "/src/new.txt") == "new\n");
  desk.look();
  REQUIRE(desk.set.changes.size() == 1);
  CHECK(desk.set.changes[0].path == path("b"));
  retire(desk.plan, *result);
  CHECK(desk.plan.decisions.empty());
  desk.check_clean();
}

TEST_CASE("a part that needs another part is refused with names") {
  Desk desk;
  put(desk.ws + "/thing", "a file\n");
  put(desk.ws + "/dir/a", "a\n");
  put(desk.ws + "/dir/b", "b\n");
  desk.branch();
  std::filesystem::remove(desk.draft + "/thing");
  put(desk.draft + "/thing/inside", "in a directory now\n");
  std::filesystem::remove_all(desk.draft + "/dir");
  put(desk.draft + "/dir", "a file now\n");
  desk.look();
  SECTION("a file in what is still a file") {
    REQUIRE(desk.approve_paths({"thing/inside"}));
    auto result = desk.commit_now();
    REQUIRE(!result);
    CHECK(result.error().code() == Code::kRefused);
    CHECK(result.error().text().find("thing") != std::string::npos);
  }
  SECTION("a directory that turns into a file while something stays in it") {
    ApproveRequest request;
    request.paths = {path("dir/a")};
    REQUIRE(approve(desk.plan, desk.set, request));
    // Approves the row of the directory itself, not what lies beneath it.
    for (const diff::Change& change : desk.set.changes)
      if (change.path == path("dir")) {
        diff::ChangeSet one;
        one.changes.push_back(change);
        ApproveRequest named;
        named.paths = {path("dir")};
        REQUIRE(approve(desk.plan, one, named));
      }
    auto result = desk.commit_now();
    REQUIRE(!result);
    CHECK(result.error().code() == Code::kRefused);
    CHECK(result.error().text().find("dir/b") != std::string::npos);
  }
  CHECK(get(desk.ws + "/thing") == "a file\n");
  CHECK(get(desk.ws + "/dir/b") == "b\n");
}

TEST_CASE("a plan that was tampered with is refused and not guessed at") {
  CHECK(!plan_from_json("{}"));
  CHECK(!plan_from_json("not json"));
  CHECK(!plan_from_json(R"({"version":2,"decisions":[],"rejected":[]})"));
  CHECK(!plan_from_json(
      R"({"version":1,"decisions":[{"path":"../x","verdict":"approved",)"
      R"("change":"sha256:00"}],"rejected":[]})"));
  CHECK(plan_from_json(R"({"version":1,"decisions":[],"rejected":[]})"));
}
