// SPDX-License-Identifier: Apache-2.0
// Three-way merges of what drifted.
#include "gate/merge.h"

#include "desk_fixture.h"

using namespace stoplog;
using namespace stoplog::gate;
using namespace stoplog::gate::test;

TEST_CASE("drifted texts are merged when asked and clean") {
  Desk desk;
  put(desk.ws + "/f", numbered_lines(30));
  desk.branch();
  std::string base = desk.top + "/base";
  std::filesystem::copy(desk.ws, base);
  put(desk.draft + "/f", numbered_lines(30, {{25, "agent"}}));
  // The base as the draft saw it stands aside; the person edits the real file.
  Fd base_fd = open_dir(base);
  desk.view = fs::view_of_directories(base_fd.get(), desk.side.get());
  desk.set = std::move(*diff::build_change_set(*desk.view, {}));
  REQUIRE(desk.approve_all());
  SECTION("clean") {
    put(desk.ws + "/f", numbered_lines(30, {{3, "person"}}));
    CHECK(desk.commit_now(false).error().code() == Code::kDrift);
    auto result = desk.commit_now(true);
    INFO((result ? "" : result.error().text()));
    REQUIRE(result);
    REQUIRE(result->merged.changes.size() == 1);
    CHECK(result->merged.changes[0].path == path("f"));
    CHECK(get(desk.ws + "/f") ==
          numbered_lines(30, {{3, "person"}, {25, "agent"}}));
    REQUIRE(desk.undo_now());
    CHECK(get(desk.ws + "/f") == numbered_lines(30, {{3, "person"}}));
  }
  SECTION("conflict") {
    std::string mine = numbered_lines(30, {{25, "person"}});
    put(desk.ws + "/f", mine);
    auto result = desk.commit_now(true);
    REQUIRE(!result);
    CHECK(result.error().code() == Code::kDrift);
    CHECK(result.error().text().find("conflicts") != std::string::npos);
    CHECK(get(desk.ws + "/f") == mine);
  }
}

// What stays held would take the real edits back.
TEST_CASE("what is approved in part is not merged") {
  Desk desk;
  put(desk.ws + "/f", numbered_lines(30));
  desk.branch();
  std::filesystem::copy(desk.ws, desk.top + "/base");
  put(desk.draft + "/f", numbered_lines(30, {{15, "agent"}, {25, "agent"}}));
  Fd base_fd = open_dir(desk.top + "/base");
  desk.view = fs::view_of_directories(base_fd.get(), desk.side.get());
  desk.set = std::move(*diff::build_change_set(*desk.view, {}));
  auto text = text_of(desk.set.changes[0]);
  REQUIRE(text);
  REQUIRE(text->edits.size() == 2);
  REQUIRE(decide_edits(
      desk.plan, desk.set.changes[0], *text,
      {.edits = {1}, .verdict = Verdict::kApproved, .reason = "", .by = {}}));
  std::string mine = numbered_lines(30, {{3, "person"}});
  put(desk.ws + "/f", mine);
  auto result = desk.commit_now(true);
  REQUIRE(!result);
  CHECK(result.error().code() == Code::kDrift);
  CHECK(result.error().text().find("not approved whole") != std::string::npos);
  CHECK(get(desk.ws + "/f") == mine);
}

TEST_CASE("three texts merge as git merges them") {
  CHECK(*merge_texts("a\nb\nc\n", "A\nb\nc\n", "a\nb\nC\n") == "A\nb\nC\n");
  CHECK(!merge_texts("a\n", "b\n", "c\n")->has_value());
  CHECK(!merge_texts(std::string_view("a\0b", 3), "a", "b")->has_value());
  CHECK(*merge_texts("", "", "") == "");
}

TEST_CASE("a merge is what was shown or nothing is written") {
  Desk desk;
  put(desk.ws + "/f", numbered_lines(30));
  put(desk.ws + "/same", "same\n");
  desk.branch();
  put(desk.draft + "/f", numbered_lines(30, {{20, "agent"}}));
  put(desk.draft + "/same", "agent\n");
  // The base as the draft saw it stands aside.
  std::string base = desk.top + "/base";
  std::filesystem::copy(desk.ws, base);
  Fd base_fd = open_dir(base);
  desk.view = fs::view_of_directories(base_fd.get(), desk.side.get());
  desk.set = std::move(*diff::build_change_set(*desk.view, {}));
  REQUIRE(desk.approve_all());
  put(desk.ws + "/f", numbered_lines(30, {{5, "person"}}));
  CommitRequest request{.ground = desk.ground(),
                        .set = &desk.set,
                        .plan = &desk.plan,
                        .meta = {},
                        .merge = true,
                        .dry_run = true};
  auto shown = gate::commit(request);
  REQUIRE(shown);
  REQUIRE(shown->merged.changes.size() == 1);
  const diff::Change& change = shown->merged.changes[0];
  CHECK(change.path == path("f"));
  auto text = [](const fs::NodeState& state) {
    std::string bytes(state.content->size(), 0);
    REQUIRE(state.content->read(0, std::as_writable_bytes(std::span(bytes))));
    return bytes;
  };
  CHECK(text(*change.before) == numbered_lines(30, {{5, "person"}}));
  CHECK(text(*change.after) ==
        numbered_lines(30, {{5, "person"}, {20, "agent"}}));
  request.dry_run = false;
  request.merge_digest = shown->merge_digest;
  SECTION("the same") {
    REQUIRE(gate::commit(request));
    CHECK(get(desk.ws + "/f") == text(*change.after));
    CHECK(get(desk.ws + "/same") == "agent\n");
  }
  SECTION("edited since") {
    put(desk.ws + "/f", numbered_lines(30, {{6, "person"}}));
    auto before = tree(desk.ws);
    auto refused = gate::commit(request);
    REQUIRE(!refused);
    CHECK(refused.error().code() == Code::kDrift);
    CHECK(tree(desk.ws) == before);
  }
  SECTION("edited back") {
    put(desk.ws + "/f", numbered_lines(30));
    auto refused = gate::commit(request);
    REQUIRE(!refused);
    CHECK(refused.error().code() == Code::kDrift);
    CHECK(get(desk.ws + "/same") == "same\n");
  }
}
