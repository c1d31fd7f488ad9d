// SPDX-License-Identifier: Apache-2.0
// What both sides did to one thing: names, modes, owners, attributes, content.
#include "desk_fixture.h"
#include "gate/merge.h"
#include "gate/merge_nodes.h"

using namespace stoplog;
using namespace stoplog::gate;
using namespace stoplog::gate::test;

namespace {

// A draft over a base that stands aside, so that the real tree can drift.
struct Parted : Desk {
  std::string base = top + "/base";
  Fd base_fd;

  Parted() {
    put(ws + "/f", numbered_lines(30));
    put(ws + "/g", "g\n");
    put(ws + "/bin", std::string("a\0b", 3));
    std::filesystem::create_symlink("f", ws + "/link");
    branch();
    std::filesystem::copy(ws, base,
                          std::filesystem::copy_options::recursive |
                              std::filesystem::copy_options::copy_symlinks);
  }
  void approve_what_is(std::map<std::string, std::string> moved = {}) {
    base_fd = open_dir(base);
    view = fs::view_of_directories(base_fd.get(), side.get(), moved);
    set = std::move(*diff::build_change_set(*view, {}));
    REQUIRE(approve_all(true));
  }
  // Plain commit stops; the merge is made, and undone, byte for byte.
  CommitResult merge(const std::function<void()>& check) {
    auto before = tree(ws);
    auto plain = commit_now(false);
    REQUIRE(!plain);
    CHECK(plain.error().code() == Code::kDrift);
    CHECK(tree(ws) == before);
    auto merged = commit_now(true);
    INFO((merged ? "" : merged.error().text()));
    REQUIRE(merged);
    check();
    check_clean();
    auto undone = undo_now();
    INFO((undone ? "" : undone.error().text()));
    REQUIRE(undone);
    CHECK(tree(ws) == before);
    return std::move(*merged);
  }
  // The merge is refused for this reason, and nothing is written.
  void refuse(const std::string& why) {
    auto before = tree(ws);
    auto refused = commit_now(true);
    REQUIRE(!refused);
    CHECK(refused.error().code() == Code::kDrift);
    INFO(refused.error().text());
    CHECK(refused.error().text().find(why) != std::string::npos);
    CHECK(tree(ws) == before);
    check_clean();
  }
};

mode_t mode_of(const std::string& path) {
  struct stat st{};
  REQUIRE(::lstat(path.c_str(), &st) == 0);
  return st.st_mode & 07777;
}

}  // namespace

TEST_CASE("what was renamed and edited is merged with edits of the real file") {
  Parted desk;
  std::filesystem::rename(desk.draft + "/f", desk.draft + "/new");
  put(desk.draft + "/new", numbered_lines(30, {{25, "agent"}}), 0755);
  desk.approve_what_is({{"new", "f"}});
  put(desk.ws + "/f", numbered_lines(30, {{3, "person"}}));
  auto done = desk.merge([&] {
    CHECK(get(desk.ws + "/new") ==
          numbered_lines(30, {{3, "person"}, {25, "agent"}}));
    CHECK(mode_of(desk.ws + "/new") == 0755);
    CHECK(!std::filesystem::exists(desk.ws + "/f"));
  });
  REQUIRE(done.merged.changes.size() == 1);
  CHECK(done.merged.changes[0].from == path("f"));
}

TEST_CASE("what was only renamed takes the real file's edits along") {
  Parted desk;
  std::filesystem::rename(desk.draft + "/f", desk.draft + "/new");
  desk.approve_what_is({{"new", "f"}});
  std::string mine = numbered_lines(30, {{3, "person"}});
  put(desk.ws + "/f", mine, 0600);
  desk.merge([&] {
    CHECK(get(desk.ws + "/new") == mine);
    CHECK(mode_of(desk.ws + "/new") == 0600);
    CHECK(!std::filesystem::exists(desk.ws + "/f"));
  });
}

TEST_CASE("a new mode comes to the content that the real file has by now") {
  Parted desk;
  ::chmod((desk.draft + "/f").c_str(), 0755);
  ::chmod((desk.draft + "/bin").c_str(), 0755);
  desk.approve_what_is();
  std::string mine = numbered_lines(30, {{3, "person"}});
  put(desk.ws + "/f", mine);
  put(desk.ws + "/bin", std::string("c\0d", 3));
  desk.merge([&] {
    CHECK(get(desk.ws + "/f") == mine);
    CHECK(mode_of(desk.ws + "/f") == 0755);
    CHECK(get(desk.ws + "/bin") == std::string("c\0d", 3));
    CHECK(mode_of(desk.ws + "/bin") == 0755);
  });
}

TEST_CASE("new content comes under the mode that the real file has by now") {
  Parted desk;
  put(desk.draft + "/f", numbered_lines(30, {{25, "agent"}}));
  put(desk.draft + "/bin", std::string("c\0d", 3));
  desk.approve_what_is();
  ::chmod((desk.ws + "/f").c_str(), 0600);
  ::chmod((desk.ws + "/bin").c_str(), 0600);
  desk.merge([&] {
    CHECK(get(desk.ws + "/f") == numbered_lines(30, {{25, "agent"}}));
    CHECK(mode_of(desk.ws + "/f") == 0600);
    CHECK(get(desk.ws + "/bin") == std::string("c\0d", 3));
    CHECK(mode_of(desk.ws + "/bin") == 0600);
  });
}

// The draft's mode went over the real one without a word.
TEST_CASE("a mode that both sides changed is not merged") {
  Parted desk;
  put(desk.draft + "/f", numbered_lines(30, {{25, "agent"}}), 0755);
  desk.approve_what_is();
  SECTION("to two") {
    ::chmod((desk.ws + "/f").c_str(), 0600);
    desk.refuse("its mode was changed on both sides: 0600 in the real tree");
  }
  SECTION("to one") {
    put(desk.ws + "/f", numbered_lines(30, {{3, "person"}}), 0755);
    desk.merge([&] {
      CHECK(get(desk.ws + "/f") ==
            numbered_lines(30, {{3, "person"}, {25, "agent"}}));
      CHECK(mode_of(desk.ws + "/f") == 0755);
    });
  }
}

TEST_CASE("what both sides did alike is done") {
  Parted desk;
  auto done_by = [&](const std::string& where) {
    put(where + "/f", "both\n", 0755);
    std::filesystem::remove(where + "/g");
    std::filesystem::rename(where + "/bin", where + "/moved");
    put(where + "/made/new", "n\n");
  };
  done_by(desk.draft);
  put(desk.draft + "/alone", "agent\n");
  desk.approve_what_is({{"moved", "bin"}});
  done_by(desk.ws);
  auto before = tree(desk.ws);
  REQUIRE(!desk.commit_now(false));
  auto merged = desk.commit_now(true);
  INFO((merged ? "" : merged.error().text()));
  REQUIRE(merged);
  CHECK(tree(desk.ws) == tree(desk.draft));
  CHECK(merged->merged.changes.empty());
  CHECK(merged->notes.size() == 5);
  // The draft is told of all of it.
  std::map<std::string, bool> told;
  for (const fs::BaseChange& change : merged->record.base_changes())
    told[change.path.str()] = change.now.has_value();
  CHECK(told == std::map<std::string, bool>{{"alone", true},
                                            {"bin", false},
                                            {"f", true},
                                            {"g", false},
                                            {"made", true},
                                            {"made/new", true},
                                            {"moved", true}});
  REQUIRE(desk.undo_now());
  CHECK(tree(desk.ws) == before);
}

TEST_CASE("what has no clean answer is not merged and says why") {
  Parted desk;
  std::string mine = numbered_lines(30, {{3, "person"}});
  SECTION("removed here and edited there") {
    std::filesystem::remove(desk.draft + "/f");
    desk.approve_what_is();
    put(desk.ws + "/f", mine);
    desk.refuse("and the draft removes it");
  }
  SECTION("edited here and removed there") {
    put(desk.draft + "/f", mine);
    desk.approve_what_is();
    std::filesystem::remove(desk.ws + "/f");
    desk.refuse("f is gone, and the draft changed it");
  }
  SECTION("two new files") {
    put(desk.draft + "/new", "agent\n");
    desk.approve_what_is();
    put(desk.ws + "/new", "person\n");
    desk.refuse("and is not what the draft has");
  }
  SECTION("moved to where somebody made a file") {
    std::filesystem::rename(desk.draft + "/f", desk.draft + "/new");
    desk.approve_what_is({{"new", "f"}});
    put(desk.ws + "/f", mine);
    put(desk.ws + "/new", "person\n");
    desk.refuse("new appeared");
  }
  SECTION("links to two places") {
    for (const auto* side : {&desk.draft, &desk.ws}) {
      std::filesystem::remove(*side + "/link");
      std::filesystem::create_symlink(side == &desk.ws ? "g" : "bin",
                                      *side + "/link");
      if (side == &desk.draft) desk.approve_what_is();
    }
    desk.refuse("points elsewhere now, since");
  }
  SECTION("another kind of thing here") {
    std::filesystem::remove(desk.draft + "/f");
    std::filesystem::create_symlink("g", desk.draft + "/f");
    desk.approve_what_is();
    put(desk.ws + "/f", mine);
    desk.refuse("and is a symlink in the draft");
  }
  SECTION("another kind of thing there") {
    put(desk.draft + "/f", mine);
    desk.approve_what_is();
    std::filesystem::remove(desk.ws + "/f");
    std::filesystem::create_symlink("g", desk.ws + "/f");
    desk.refuse("is a symlink now");
  }
  SECTION("no lines") {
    put(desk.draft + "/bin", std::string("a\0agent", 7));
    desk.approve_what_is();
    put(desk.ws + "/bin", std::string("a\0person", 8));
    desk.refuse("it has no lines to merge");
  }
  SECTION("a directory that somebody wrote into") {
    std::filesystem::create_directory(desk.ws + "/d");
    std::filesystem::create_directory(desk.base + "/d");
    desk.approve_what_is();
    put(desk.ws + "/d/new", "person\n");
    desk.refuse("cannot go: it has d/new");
  }
}

TEST_CASE("a new name of a merged file is a name of the merge") {
  Parted desk;
  put(desk.draft + "/f", numbered_lines(30, {{25, "agent"}}));
  SECTION("after it") {
    std::filesystem::create_hard_link(desk.draft + "/f", desk.draft + "/twin");
  }
  SECTION("before it") {
    std::filesystem::create_hard_link(desk.draft + "/f", desk.draft + "/a");
  }
  desk.approve_what_is();
  std::string mine = numbered_lines(30, {{3, "person"}});
  put(desk.ws + "/f", mine);
  auto done = desk.merge([&] {
    struct stat st{};
    REQUIRE(::lstat((desk.ws + "/f").c_str(), &st) == 0);
    CHECK(st.st_nlink == 2);
    CHECK(get(desk.ws + "/f") ==
          numbered_lines(30, {{3, "person"}, {25, "agent"}}));
  });
  CHECK(done.merged.changes.size() == 2);
}

TEST_CASE("a merge of modes and names is what was shown") {
  Parted desk;
  std::filesystem::rename(desk.draft + "/f", desk.draft + "/new");
  ::chmod((desk.draft + "/new").c_str(), 0755);
  desk.approve_what_is({{"new", "f"}});
  std::string mine = numbered_lines(30, {{3, "person"}});
  put(desk.ws + "/f", mine);
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
  CHECK(change.path == path("new"));
  CHECK(change.from == path("f"));
  CHECK(change.before->mode == 0644);
  CHECK(change.after->mode == 0755);
  CHECK(!change.content_changed);
  request.dry_run = false;
  request.merge_digest = shown->merge_digest;
  put(desk.ws + "/f", numbered_lines(30, {{4, "person"}}));
  auto refused = gate::commit(request);
  REQUIRE(!refused);
  CHECK(refused.error().code() == Code::kDrift);
  put(desk.ws + "/f", mine);
  REQUIRE(gate::commit(request));
  CHECK(get(desk.ws + "/new") == mine);
}

TEST_CASE("attributes are merged each by itself and a mode with its lists") {
  auto node = [](mode_t mode, std::map<std::string, std::string> xattrs) {
    Node made;
    made.mode = mode;
    made.xattrs = std::move(xattrs);
    return made;
  };
  Node base = node(0644, {{"user.a", "1"}, {"user.b", "1"}}), merged;
  Node real = node(0644, {{"user.a", "2"}, {"user.b", "1"}, {"user.c", "1"}});
  Node draft = node(0600, {{"user.a", "1"}});
  CHECK(merge_attributes({base, real, draft}, merged) == "");
  CHECK(merged.mode == 0600);
  CHECK(merged.xattrs ==
        std::map<std::string, std::string>{{"user.a", "2"}, {"user.c", "1"}});
  draft.xattrs["user.a"] = "3";
  CHECK(merge_attributes({base, real, draft}, merged) ==
        "its attribute user.a was changed on both sides");
  // A list's mask is the group's bits.
  Node listed = node(0644, {{"system.posix_acl_access", "x"}});
  Node plain = node(0644, {}), other = node(0600, {});
  CHECK(merge_attributes({plain, listed, other}, merged).find("its mode") == 0);
  CHECK(merge_attributes({plain, listed, plain}, merged) == "");
  CHECK(merged.xattrs == listed.xattrs);
  Node owned = plain, taken = plain;
  owned.uid = 1;
  taken.uid = 2;
  CHECK(merge_attributes({plain, owned, taken}, merged) ==
        "its owner was changed on both sides");
}
