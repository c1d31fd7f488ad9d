// SPDX-License-Identifier: Apache-2.0
// What may be approved, by which words, and what becomes of it.
#include <sys/sysmacros.h>

#include "desk_fixture.h"
#include "gate/select_items.h"

using namespace stoplog;
using namespace stoplog::gate;
using namespace stoplog::gate::test;

TEST_CASE(
    "a mode approved at one name does not show at one that was replaced") {
  Desk desk;
  put(desk.ws + "/a", "one file\n");
  std::filesystem::create_hard_link(desk.ws + "/a", desk.ws + "/b");
  desk.branch();
  std::filesystem::remove(desk.draft + "/b");
  put(desk.draft + "/b", "another\n");
  std::filesystem::permissions(desk.draft + "/a", std::filesystem::perms{0700});
  desk.look();
  REQUIRE(desk.approve_paths({"a"}));
  auto result = desk.commit_now();
  INFO((result ? "" : result.error().text()));
  REQUIRE(result);
  auto mode = [&](const char* name) {
    return std::filesystem::status(desk.ws + name).permissions();
  };
  CHECK(mode("/a") == std::filesystem::perms{0700});
  CHECK(mode("/b") == std::filesystem::perms{0644});
  CHECK(get(desk.ws + "/b") == "one file\n");
}

TEST_CASE("an approval is stale only when its own path changed") {
  Desk desk;
  put(desk.ws + "/a", "a\n");
  put(desk.ws + "/b", "b\n");
  desk.branch();
  put(desk.draft + "/a", "a2\n");
  put(desk.draft + "/b", "b2\n");
  desk.look();
  REQUIRE(desk.approve_paths({"a"}));
  SECTION("another path changed") {
    put(desk.draft + "/b", "b3\n");
    desk.look();
    CHECK(desk.commit_now());
  }
  SECTION("the content changed") {
    put(desk.draft + "/a", "evil\n");
    desk.look();
    CHECK(opinion(desk.plan, desk.set.changes[0])->stale);
    auto result = desk.commit_now();
    REQUIRE(!result);
    CHECK(result.error().code() == Code::kDrift);
    CHECK(result.error().text().find("a") != std::string::npos);
    CHECK(get(desk.ws + "/a") == "a\n");
  }
  SECTION("the mode changed") {
    ::chmod((desk.draft + "/a").c_str(), 0755);
    desk.look();
    CHECK(desk.commit_now().error().code() == Code::kDrift);
  }
  SECTION("the change is gone") {
    put(desk.draft + "/a", "a\n");
    desk.look();
    CHECK(desk.commit_now().error().code() == Code::kDrift);
  }
}

TEST_CASE("approve with a digest refuses another change set") {
  Desk desk;
  desk.branch();
  put(desk.draft + "/x", "x\n");
  desk.look();
  std::string digest = "sha256:" + hex(*desk.set.digest);
  put(desk.draft + "/x", "y\n");
  desk.look();
  ApproveRequest request{
      .paths = {}, .all = true, .danger = false, .digest = digest};
  auto result = approve(desk.plan, desk.set, request);
  REQUIRE(!result);
  CHECK(result.error().code() == Code::kDrift);
  CHECK(desk.plan.decisions.empty());
}

TEST_CASE("dangers are approved by name alone") {
  Desk desk;
  put(desk.ws + "/precious", "git does not have this\n");
  desk.branch();
  std::filesystem::remove(desk.draft + "/precious");
  std::filesystem::create_directory(desk.draft + "/d");
  ::mkfifo((desk.draft + "/d/fifo").c_str(), 0644);
  put(desk.draft + "/d/plain", "plain\n");
  desk.look();
  auto report = desk.approve_all();
  REQUIRE(report);
  CHECK(report->approved == std::vector{path("d/plain")});
  CHECK(report->dangers == std::vector{path("d/fifo"), path("precious")});
  auto by_directory = desk.approve_paths({"d"});
  REQUIRE(by_directory);
  CHECK(by_directory->dangers == std::vector{path("d/fifo")});
  REQUIRE(desk.commit_now());
  CHECK(std::filesystem::exists(desk.ws + "/precious"));
  CHECK(!std::filesystem::exists(desk.ws + "/d/fifo"));
  desk.plan = {};
  desk.look();
  REQUIRE(desk.approve_paths({"d/fifo", "precious"}));
  auto result = desk.commit_now();
  REQUIRE(result);
  CHECK(!std::filesystem::exists(desk.ws + "/precious"));
  CHECK(std::filesystem::is_fifo(desk.ws + "/d/fifo"));
  REQUIRE(desk.undo_now());
  CHECK(get(desk.ws + "/precious") == "git does not have this\n");
  CHECK(!std::filesystem::exists(desk.ws + "/d/fifo"));
}

TEST_CASE("setuid and world-writable bits come only with an approval by name") {
  Desk desk;
  put(desk.ws + "/tool", "#!/bin/sh\n", 0644);
  desk.branch();
  ::chmod((desk.draft + "/tool").c_str(), 06777);
  desk.look();
  Plan unnamed;
  // A plan that says yes without naming it, whoever made it.
  REQUIRE(desk.approve_all(true));
  for (const Decision& decision : desk.plan.decisions) {
    Decision tame = decision;
    tame.confirmed = false;
    unnamed.set(tame);
  }
  auto refused = gate::commit({.ground = desk.ground(),
                               .set = &desk.set,
                               .plan = &unnamed,
                               .meta = {}});
  REQUIRE(!refused);
  CHECK(refused.error().code() == Code::kRefused);
  Node fresh{.type = fs::Type::kFile, .mode = 06777};
  CHECK(tame_mode(fresh, std::nullopt) == 0775);
  Node old{.type = fs::Type::kFile, .mode = 04755};
  CHECK(tame_mode(fresh, old) == 04775);
  // Nor shut to its owner, who could not even undo it.
  fresh.mode = 0;
  CHECK(tame_mode(fresh, old) == 0400);
  fresh.type = fs::Type::kDir;
  CHECK(tame_mode(fresh, std::nullopt) == 0700);
  fresh.mode = 0555;
  CHECK(tame_mode(fresh, std::nullopt) == 0555);
  fresh.mode = old.mode = 0311;
  CHECK(tame_mode(fresh, old) == 0311);
  REQUIRE(desk.commit_now());
  struct stat st{};
  ::stat((desk.ws + "/tool").c_str(), &st);
  CHECK((st.st_mode & 07777) == 06777);
}

TEST_CASE("a file that all may write to comes so only when it is named") {
  const bool named = GENERATE(false, true);
  Desk desk;
  put(desk.ws + "/kept", "old");
  desk.branch();
  put(desk.draft + "/open", "new", 0666);
  desk.look();
  if (named)
    REQUIRE(approve(desk.plan, desk.set, {.paths = {*RelPath::parse("open")}}));
  else
    REQUIRE(desk.approve_all());
  auto done = desk.commit_now();
  REQUIRE(done);
  struct stat st{};
  ::stat((desk.ws + "/open").c_str(), &st);
  CHECK((st.st_mode & 07777) == (named ? 0666 : 0664));
  CHECK(done->notes.empty() == named);
  // What did not come stays held.
  desk.look();
  CHECK(desk.set.empty() == named);
}

TEST_CASE("approved hunks are committed exactly and the others stay held") {
  Desk desk;
  change_three_lines(desk);
  const diff::Change& change = desk.set.changes[0];
  auto text = text_of(change);
  REQUIRE(text);
  REQUIRE(text->edits.size() == 3);
  REQUIRE(decide_edits(desk.plan, change, *text,
                       {.edits = {0, 2},
                        .verdict = Verdict::kApproved,
                        .reason = "",
                        .by = {}}));
  REQUIRE(decide_edits(desk.plan, change, *text,
                       {.edits = {1},
                        .verdict = Verdict::kRejected,
                        .reason = "fifty is right as it is",
                        .by = {}}));
  CHECK(opinion(desk.plan, change)->decided == Decided::kPartial);
  // The plan survives the disk.
  REQUIRE(save_plan(desk.state.get(), desk.plan));
  auto loaded = load_plan(desk.state.get());
  REQUIRE(loaded);
  CHECK(*loaded == desk.plan);
  CHECK(rejections_text(desk.plan).find("fifty is right") != std::string::npos);
  SECTION("committed") {
    auto result = desk.commit_now();
    REQUIRE(result);
    CHECK(get(desk.ws + "/f") ==
          numbered_lines(100, {{10, "TEN"}, {90, "NINETY"}}));
    retire(desk.plan, *result);
    desk.look();
    REQUIRE(desk.set.changes.size() == 1);
    // The rejected hunk is known again.
    auto again = opinion(desk.plan, desk.set.changes[0]);
    CHECK(again->decided == Decided::kRejected);
    CHECK(again->reason == "fifty is right as it is");
  }
  SECTION("an approved hunk that changed is stale") {
    put(desk.draft + "/f", numbered_lines(100, {{10, "ten"}, {50, "FIFTY"}}));
    desk.look();
    CHECK(desk.commit_now().error().code() == Code::kDrift);
    CHECK(get(desk.ws + "/f") == numbered_lines(100));
  }
}

TEST_CASE(
    "an undecided hunk beside a rejected one is not rejected after a commit") {
  Desk desk;
  change_three_lines(desk);
  auto decide = [&](size_t edit, Verdict verdict) {
    const diff::Change& change = desk.set.changes[0];
    REQUIRE(decide_edits(
        desk.plan, change, *text_of(change),
        {.edits = {edit}, .verdict = verdict, .reason = "no", .by = {}}));
  };
  decide(0, Verdict::kApproved);
  decide(1, Verdict::kRejected);
  auto result = desk.commit_now();
  REQUIRE(result);
  CHECK(get(desk.ws + "/f") == numbered_lines(100, {{10, "TEN"}}));
  retire(desk.plan, *result);
  desk.look();
  REQUIRE(desk.set.changes.size() == 1);
  const diff::Change& change = desk.set.changes[0];
  auto now = opinion(desk.plan, change);
  CHECK(now->decided == Decided::kPartial);
  CHECK(now->undecided);
  CHECK_FALSE(now->approves);
  CHECK(now->reason == "no");
  CHECK(edit_verdicts(desk.plan, change, *text_of(change)) ==
        std::vector<std::optional<Verdict>>{Verdict::kRejected, std::nullopt});
  // What is rejected stays so; the rest is for `commit -a` to take.
  ApproveRequest all;
  all.all = all.keep_rejected = true;
  CHECK(approve(desk.plan, desk.set, all)->approved == std::vector{path("f")});
  REQUIRE(desk.commit_now());
  CHECK(get(desk.ws + "/f") ==
        numbered_lines(100, {{10, "TEN"}, {90, "NINETY"}}));
}

TEST_CASE("a new hunk in a file that was rejected is undecided") {
  Desk desk;
  change_three_lines(desk);
  RejectRequest request{.paths = {path("f")}, .reason = "no"};
  REQUIRE(reject(desk.plan, desk.set, request));
  CHECK(opinion(desk.plan, desk.set.changes[0])->decided == Decided::kRejected);
  put(desk.draft + "/f",
      numbered_lines(
          100, {{10, "TEN"}, {50, "FIFTY"}, {70, "SEVENTY"}, {90, "NINETY"}}));
  desk.look();
  const diff::Change& change = desk.set.changes[0];
  auto now = opinion(desk.plan, change);
  CHECK(now->decided == Decided::kPartial);
  CHECK(now->undecided);
  auto rejected = Verdict::kRejected;
  CHECK(edit_verdicts(desk.plan, change, *text_of(change)) ==
        std::vector<std::optional<Verdict>>{rejected, rejected, std::nullopt,
                                            rejected});
}

TEST_CASE("commit -a takes the undecided hunks and not the rejected ones") {
  Desk desk;
  change_three_lines(desk);
  const diff::Change& change = desk.set.changes[0];
  auto text = text_of(change);
  REQUIRE(text);
  auto decide = [&](size_t edit, Verdict verdict) {
    REQUIRE(decide_edits(
        desk.plan, change, *text,
        {.edits = {edit}, .verdict = verdict, .reason = "no", .by = {}}));
  };
  ApproveRequest all;
  all.all = all.keep_rejected = true;
  SECTION("one rejected and two undecided") {
    decide(1, Verdict::kRejected);
    auto before = opinion(desk.plan, change);
    CHECK(before->decided == Decided::kPartial);
    CHECK(before->undecided);
    CHECK_FALSE(before->approves);
    CHECK(approve(desk.plan, desk.set, all)->approved ==
          std::vector{path("f")});
    CHECK_FALSE(opinion(desk.plan, change)->undecided);
    REQUIRE(desk.commit_now());
    CHECK(get(desk.ws + "/f") ==
          numbered_lines(100, {{10, "TEN"}, {90, "NINETY"}}));
  }
  SECTION("one approved and two undecided") {
    decide(0, Verdict::kApproved);
    CHECK(opinion(desk.plan, change)->undecided);
    REQUIRE(approve(desk.plan, desk.set, all));
    CHECK(opinion(desk.plan, change)->decided == Decided::kApproved);
  }
  SECTION("all rejected") {
    for (size_t i : {0u, 1u, 2u}) decide(i, Verdict::kRejected);
    CHECK(opinion(desk.plan, change)->decided == Decided::kRejected);
    CHECK(approve(desk.plan, desk.set, all)->rejected ==
          std::vector{path("f")});
  }
}

TEST_CASE("a rejected change stays rejected and is left out by commit -a") {
  Desk desk;
  desk.branch();
  put(desk.draft + "/x", "x\n");
  put(desk.draft + "/y", "y\n");
  desk.look();
  RejectRequest request{.paths = {path("x")}, .reason = "not this one"};
  REQUIRE(reject(desk.plan, desk.set, request));
  ApproveRequest all;
  all.all = all.keep_rejected = true;
  auto report = approve(desk.plan, desk.set, all);
  REQUIRE(report);
  CHECK(report->rejected == std::vector{path("x")});
  REQUIRE(desk.commit_now());
  CHECK(!std::filesystem::exists(desk.ws + "/x"));
  CHECK(std::filesystem::exists(desk.ws + "/y"));
  // A path that names nothing is an error.
  CHECK(desk.approve_paths({"nowhere"}).error().code() == Code::kUsage);
}

TEST_CASE("a danger that was decided by name does not stop commit -a") {
  Desk desk;
  desk.branch();
  put(desk.draft + "/plain", "x\n");
  put(desk.draft + "/.envrc", "export A=1\n");
  desk.look();
  REQUIRE(desk.set.find(path(".envrc"))->is_danger());
  ApproveRequest all;
  all.all = all.keep_rejected = true;
  SECTION("undecided it is left over") {
    auto report = approve(desk.plan, desk.set, all);
    REQUIRE(report);
    CHECK(report->dangers == std::vector{path(".envrc")});
  }
  SECTION("approved") {
    REQUIRE(desk.approve_paths({".envrc"}));
    auto report = approve(desk.plan, desk.set, all);
    REQUIRE(report);
    CHECK(report->dangers.empty());
    CHECK(report->approved == std::vector{path("plain")});
    REQUIRE(desk.commit_now());
    CHECK(std::filesystem::exists(desk.ws + "/.envrc"));
  }
  SECTION("approved and then changed it is left over again") {
    REQUIRE(desk.approve_paths({".envrc"}));
    put(desk.draft + "/.envrc", "export A=2\n");
    desk.look();
    auto report = approve(desk.plan, desk.set, all);
    REQUIRE(report);
    CHECK(report->dangers == std::vector{path(".envrc")});
  }
  SECTION("rejected") {
    RejectRequest request{.paths = {path(".envrc")}, .reason = "no"};
    REQUIRE(reject(desk.plan, desk.set, request));
    auto report = approve(desk.plan, desk.set, all);
    REQUIRE(report);
    CHECK(report->dangers.empty());
    CHECK(report->rejected == std::vector{path(".envrc")});
    REQUIRE(desk.commit_now());
    CHECK(!std::filesystem::exists(desk.ws + "/.envrc"));
    CHECK(std::filesystem::exists(desk.ws + "/plain"));
  }
}

TEST_CASE("sockets and devices are approved by name alone") {
  Desk desk;
  desk.branch();
  std::vector<std::string> names{"d/socket"};
  put(desk.draft + "/d/plain", "plain\n");
  REQUIRE(::mknod((desk.draft + "/d/socket").c_str(), S_IFSOCK | 0600, 0) == 0);
  // Devices are root's to make.
  if (::geteuid() == 0) {
    names.insert(names.begin(), {"d/block", "d/char"});
    ::mknod((desk.draft + "/d/char").c_str(), S_IFCHR | 0600, makedev(1, 3));
    ::mknod((desk.draft + "/d/block").c_str(), S_IFBLK | 0600, makedev(7, 99));
  }
  std::vector<RelPath> paths;
  for (const std::string& name : names) paths.push_back(path(name));
  desk.look();
  auto report = desk.approve_all();
  REQUIRE(report);
  CHECK(report->approved == std::vector{path("d/plain")});
  CHECK(report->dangers == paths);
  REQUIRE(desk.commit_now());
  for (const std::string& name : names)
    CHECK(!std::filesystem::exists(desk.ws + "/" + name));
  desk.plan = {};
  desk.look();
  REQUIRE(desk.approve_paths(names));
  REQUIRE(desk.commit_now());
  CHECK(tree(desk.ws) == tree(desk.draft));
}

TEST_CASE("decisions are taken out one by one and many at once") {
  Plan plan;
  auto path = [](const char* text) { return *RelPath::parse(text); };
  for (const char* name : {"d", "a", "c", "b", "e"}) {
    Decision decision;
    decision.path = path(name);
    plan.set(std::move(decision));
  }
  CHECK(plan.erase(path("c")));
  CHECK_FALSE(plan.erase(path("c")));
  plan.erase(std::vector{path("e"), path("nowhere"), path("a")});
  REQUIRE(plan.decisions.size() == 2);
  CHECK(plan.decisions[0].path == path("b"));
  CHECK(plan.find(path("d")) == &plan.decisions[1]);
}
