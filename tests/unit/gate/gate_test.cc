// SPDX-License-Identifier: Apache-2.0
// Approving, committing and undoing over real change sets.
#include "gate/gate.h"

#include "gate/merge.h"
#include "gate/select_items.h"
#include "tree_fixture.h"

using namespace stoplog;
using namespace stoplog::gate;
using namespace stoplog::gate::test;

namespace {

RelPath path(std::string_view text) { return *RelPath::parse(text); }

struct Desk : Site {
  Plan plan;
  std::unique_ptr<fs::View> view;
  diff::ChangeSet set;

  // Takes the change set of the draft's side as it is now.
  void look(std::map<std::string, std::string> moved = {}) {
    view = fs::view_of_directories(root.get(), side.get(), moved);
    auto built = diff::build_change_set(*view, diff::DiffOptions{});
    INFO((built ? "" : built.error().text()));
    REQUIRE(built);
    set = std::move(*built);
  }
  Result<ApproveReport> approve_paths(std::vector<std::string> names) {
    ApproveRequest request;
    for (const auto& name : names) request.paths.push_back(path(name));
    return approve(plan, set, request);
  }
  Result<ApproveReport> approve_all(bool danger = false) {
    ApproveRequest request;
    request.all = true;
    request.danger = danger;
    return approve(plan, set, request);
  }
  Result<CommitResult> commit_now(bool merge = false) {
    return gate::commit({.ground = ground(),
                         .set = &set,
                         .plan = &plan,
                         .meta = {},
                         .merge = merge});
  }
  Result<CommitResult> undo_now(std::optional<uint64_t> number = {}) {
    return gate::undo({.ground = ground(), .number = number, .meta = {}});
  }
};

std::string numbered_lines(int count, std::map<int, std::string> other = {}) {
  std::string text;
  for (int i = 1; i <= count; ++i)
    text += other.contains(i) ? other[i] + "\n" : fmt::format("line {}\n", i);
  return text;
}

void change_three_lines(Desk& desk) {
  put(desk.ws + "/f", numbered_lines(100));
  desk.branch();
  put(desk.draft + "/f",
      numbered_lines(100, {{10, "TEN"}, {50, "FIFTY"}, {90, "NINETY"}}));
  desk.look();
}

}  // namespace

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
  REQUIRE(desk.commit_now());
  struct stat st{};
  ::stat((desk.ws + "/tool").c_str(), &st);
  CHECK((st.st_mode & 07777) == 06777);
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

TEST_CASE("undo restores everything and can itself be undone") {
  Desk desk;
  put(desk.ws + "/edit", "old\n");
  put(desk.ws + "/gone/deep/x", "x\n", 0600);
  put(desk.ws + "/mode", "m\n", 0644);
  put(desk.ws + "/mv", "moved\n");
  put(desk.ws + "/l1", "links\n");
  ::link((desk.ws + "/l1").c_str(), (desk.ws + "/l2").c_str());
  std::filesystem::create_symlink("edit", desk.ws + "/ln");
  timespec long_ago[2] = {{1000000000, 5}, {1000000000, 5}};
  ::utimensat(AT_FDCWD, (desk.ws + "/edit").c_str(), long_ago, 0);
  desk.branch();
  put(desk.draft + "/edit", "new\n");
  std::filesystem::remove_all(desk.draft + "/gone");
  ::chmod((desk.draft + "/mode").c_str(), 0600);
  ::rename((desk.draft + "/mv").c_str(), (desk.draft + "/mv2").c_str());
  put(desk.draft + "/l1", "links!\n");
  std::filesystem::remove(desk.draft + "/ln");
  put(desk.draft + "/ln/now/dir", "a directory\n");
  auto before = tree(desk.ws);
  desk.look({{"mv2", "mv"}});
  REQUIRE(desk.approve_all(true));
  auto result = desk.commit_now();
  INFO((result ? "" : result.error().text()));
  REQUIRE(result);
  CHECK(tree(desk.ws) == tree(desk.draft));
  CHECK(newest_undoable(desk.state.get())->value() == 1);
  auto undone = desk.undo_now();
  INFO((undone ? "" : undone.error().text()));
  REQUIRE(undone);
  CHECK(tree(desk.ws) == before);
  struct stat st{};
  ::stat((desk.ws + "/edit").c_str(), &st);
  CHECK(st.st_mtim.tv_sec == 1000000000);
  CHECK(!newest_undoable(desk.state.get())->has_value());
  // The undo is commit 2; taking it back gives the draft's tree again.
  auto redone = desk.undo_now(2);
  INFO((redone ? "" : redone.error().text()));
  REQUIRE(redone);
  CHECK(tree(desk.ws) == tree(desk.draft));
  CHECK(newest_undoable(desk.state.get())->value() == 1);
  desk.check_clean();
}

TEST_CASE("a directory moved over an empty one is committed and undone") {
  Desk desk;
  put(desk.ws + "/brought/file", "file\n");
  put(desk.ws + "/brought/sub/deep", "deep\n", 0600);
  put(desk.ws + "/over/stays/in", "the same name\n");
  std::filesystem::create_directory(desk.ws + "/empty");
  ::chmod((desk.ws + "/brought").c_str(), 0750);
  desk.branch();
  const std::string& d = desk.draft;
  std::string target = GENERATE("empty", "over");
  std::filesystem::remove_all(d + "/" + target);
  REQUIRE(::rename((d + "/brought").c_str(), (d + "/" + target).c_str()) == 0);
  put(d + "/" + target + "/stays/in", "another\n");
  auto before = tree(desk.ws);
  desk.look({{target, "brought"}});
  // All of it, or nothing.
  REQUIRE(desk.approve_paths({target + "/file"}));
  auto part = desk.commit_now();
  REQUIRE(!part);
  CHECK(part.error().code() == Code::kRefused);
  CHECK(part.error().text().find(target + "/sub") != std::string::npos);
  CHECK(tree(desk.ws) == before);
  REQUIRE(desk.approve_all(true));
  auto result = desk.commit_now();
  INFO((result ? "" : result.error().text()));
  REQUIRE(result);
  CHECK(tree(desk.ws) == tree(desk.draft));
  for (const auto& change : result->record.base_changes())
    if (change.path == path(target)) CHECK(change.now.has_value());
  auto undone = desk.undo_now();
  INFO((undone ? "" : undone.error().text()));
  REQUIRE(undone);
  CHECK(tree(desk.ws) == before);
  auto redone = desk.undo_now(2);
  INFO((redone ? "" : redone.error().text()));
  REQUIRE(redone);
  CHECK(tree(desk.ws) == tree(desk.draft));
  desk.check_clean();
}

TEST_CASE("undo is refused when a path was edited since") {
  Desk desk;
  put(desk.ws + "/a", "one\n");
  desk.branch();
  put(desk.draft + "/a", "two\n");
  desk.look();
  REQUIRE(desk.approve_all());
  REQUIRE(desk.commit_now());
  put(desk.ws + "/a", "edited by a person\n");
  auto result = desk.undo_now();
  REQUIRE(!result);
  CHECK(result.error().code() == Code::kDrift);
  CHECK(get(desk.ws + "/a") == "edited by a person\n");
}

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
    CHECK(result->merged == std::vector{path("f")});
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

TEST_CASE("three texts merge as git merges them") {
  CHECK(*merge_texts("a\nb\nc\n", "A\nb\nc\n", "a\nb\nC\n") == "A\nb\nC\n");
  CHECK(!merge_texts("a\n", "b\n", "c\n")->has_value());
  CHECK(!merge_texts(std::string_view("a\0b", 3), "a", "b")->has_value());
  CHECK(*merge_texts("", "", "") == "");
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

TEST_CASE("undo takes no more than it may and the oldest are named before") {
  Site site;
  auto noise = [](int seed) {
    std::string text;
    uint32_t x = static_cast<uint32_t>(seed) * 2654435761u + 1;
    for (int i = 0; i < 20000; ++i) {
      x ^= x << 13, x ^= x >> 17, x ^= x << 5;
      text += static_cast<char>(x & 0xff);
    }
    return text;
  };
  put(site.ws + "/f", noise(0));
  for (int i = 1; i <= 4; ++i) {
    site.branch();
    put(site.draft + "/f", noise(i));
    REQUIRE(site.commit());
    REQUIRE(note_rebased(site.state.get(), static_cast<uint64_t>(i)));
  }
  int state = site.state.get();
  // Room for two: nothing goes unannounced.
  auto first = trim_undo(state, *site.store, 50000);
  REQUIRE(first);
  CHECK(first->bytes > 80000);
  CHECK(first->gone.empty());
  CHECK(first->next == std::vector<uint64_t>{1, 2});
  CHECK(list_commits(state)->size() == 4);
  auto second = trim_undo(state, *site.store, 50000);
  REQUIRE(second);
  CHECK(second->gone == std::vector<uint64_t>{1, 2});
  CHECK(second->next.empty());
  CHECK(*list_commits(state) == std::vector<uint64_t>{3, 4});
  // With room again, nobody goes; the newest never does.
  CHECK(trim_undo(state, *site.store, 1 << 20)->gone.empty());
  CHECK(trim_undo(state, *site.store, 1)->next == std::vector<uint64_t>{3});
  CHECK(trim_undo(state, *site.store, 1)->gone == std::vector<uint64_t>{3});
  CHECK(trim_undo(state, *site.store, 1)->gone.empty());
  CHECK(*list_commits(state) == std::vector<uint64_t>{4});
  REQUIRE(undo({.ground = site.ground(), .number = {}, .meta = {}}));
  CHECK(get(site.ws + "/f") == noise(3));
  CHECK(*next_commit_number(state) == 6);
}
