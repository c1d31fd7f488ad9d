// SPDX-License-Identifier: Apache-2.0
// Taking commits back.
#include "desk_fixture.h"

using namespace stoplog;
using namespace stoplog::gate;
using namespace stoplog::gate::test;

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
  CHECK(read_commit(state, 2).error().text().find("kept no longer") !=
        std::string::npos);
  CHECK(read_commit(state, 5).error().text().find("no commit 5") !=
        std::string::npos);
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

TEST_CASE("what undo keeps is not read while there is room for all of it") {
  Site site;
  put(site.ws + "/f", "0");
  for (int i = 1; i <= 3; ++i) {
    site.branch();
    put(site.draft + "/f", std::to_string(i));
    REQUIRE(site.commit());
    REQUIRE(note_rebased(site.state.get(), static_cast<uint64_t>(i)));
  }
  put(site.state_path + "/commits/1.commit", "no record");
  auto trimmed = trim_undo(site.state.get(), *site.store, 1 << 20);
  REQUIRE(trimmed);
  CHECK(trimmed->gone.empty());
  CHECK(trimmed->next.empty());
  CHECK_FALSE(trim_undo(site.state.get(), *site.store, 1));
}
