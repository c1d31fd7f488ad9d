// SPDX-License-Identifier: Apache-2.0
// A git repository under a draft: git itself says what is right.
#include "gate/git_rule.h"

#include <sys/wait.h>

#include <csignal>

#include "gate/git_paths.h"
#include "repo_fixture.h"

using namespace stoplog;
using namespace stoplog::gate;
using namespace stoplog::gate::test;

TEST_CASE("a commit made in the draft is a commit of the real repository") {
  Repo repo;
  put(repo.draft + "/a.txt", "two\n");
  repo.git(repo.draft, "commit -q -am second");
  repo.git(repo.draft, "branch side HEAD~1");
  repo.git(repo.draft, "tag v1");
  std::string head = repo.git(repo.draft, "rev-parse HEAD");
  repo.look();
  auto result = repo.commit_now();
  INFO((result ? "" : result.error().text()));
  REQUIRE(result);
  CHECK(repo.git(repo.ws, "rev-parse HEAD") == head);
  CHECK(repo.git(repo.ws, "rev-parse v1") == head);
  CHECK(repo.git(repo.ws, "rev-parse side") ==
        repo.git(repo.draft, "rev-parse side"));
  CHECK(repo.git(repo.ws, "status --porcelain").empty());
  repo.git(repo.ws, "fsck --strict");
  CHECK(repo.git(repo.ws, "reflog -1 --format=%gs").find("second") !=
        std::string::npos);
  for (const auto& entry :
       std::filesystem::recursive_directory_iterator(repo.ws + "/.git"))
    CHECK(!entry.path().string().ends_with(".lock"));
  repo.check_clean();
  SECTION("and can be undone without losing an object") {
    auto undone = undo({.ground = repo.ground(), .number = {}, .meta = {}});
    INFO((undone ? "" : undone.error().text()));
    REQUIRE(undone);
    CHECK(repo.git(repo.ws, "rev-parse HEAD") ==
          repo.git(repo.base, "rev-parse HEAD"));
    CHECK(repo.git(repo.ws, "status --porcelain").empty());
    CHECK(get(repo.ws + "/a.txt") == "one\n");
    repo.git(repo.ws, "cat-file -e " + head);
    repo.git(repo.ws, "fsck --strict");
  }
}

TEST_CASE(
    "an index of SHA-256 names and a split one are committed and undone") {
  std::string kind = GENERATE("sha256", "split", "split-later");
  Repo repo(kind == "sha256" ? "--object-format=sha256" : "",
            kind == "split"
                ? std::vector<std::string>{"update-index --split-index"}
                : std::vector<std::string>{"tag gone", "pack-refs --all"});
  if (kind == "split-later") repo.git(repo.draft, "update-index --split-index");
  if (kind == "split")  // a new shared part instead of the base's
    repo.git(repo.draft, "update-index --no-split-index --split-index");
  put(repo.draft + "/a.txt", "two\n");
  repo.git(repo.draft, "commit -q -am second");
  if (kind != "split") repo.git(repo.draft, "tag -d gone");
  // The real index is refreshed meanwhile, which changes none of its entries.
  put(repo.ws + "/b.txt", "one\n");
  repo.git(repo.ws, "update-index --refresh");
  repo.look();
  auto result = repo.commit_now();
  INFO(kind << (result ? "" : result.error().text()));
  REQUIRE(result);
  for (const std::string& note : result->notes) INFO(note);
  CHECK(result->notes.empty());
  CHECK(repo.git(repo.ws, "rev-parse HEAD") ==
        repo.git(repo.draft, "rev-parse HEAD"));
  CHECK(repo.git(repo.ws, "status --porcelain").empty());
  CHECK(repo.git(repo.ws, "tag").empty());
  repo.git(repo.ws, "fsck --strict");
  repo.git(repo.ws, "update-index --refresh");
  auto undone = undo({.ground = repo.ground(), .number = {}, .meta = {}});
  INFO((undone ? "" : undone.error().text()));
  REQUIRE(undone);
  CHECK(repo.git(repo.ws, "rev-parse HEAD") ==
        repo.git(repo.base, "rev-parse HEAD"));
  CHECK(repo.git(repo.ws, "status --porcelain").empty());
  CHECK(repo.git(repo.ws, "tag") == (kind == "split" ? "" : "gone"));
}

TEST_CASE("a shared part that the real index rests on is not taken away") {
  Repo repo("", {"update-index --split-index"});
  put(repo.draft + "/a.txt", "agent\n");
  repo.git(repo.draft, "commit -q -am agent");
  repo.git(repo.draft, "update-index --no-split-index");
  REQUIRE(::system(("rm " + repo.draft + "/.git/sharedindex.*").c_str()) == 0);
  put(repo.ws + "/b.txt", "person\n");
  repo.git(repo.ws, "add b.txt");
  repo.look();
  auto result = repo.commit_now();
  INFO((result ? "" : result.error().text()));
  REQUIRE(result);
  CHECK(has_note(*result, "the index has other entries"));
  CHECK(repo.git(repo.ws, "diff --cached --name-only").find("b.txt") !=
        std::string::npos);
}

TEST_CASE("a rejected file does not come in with a commit that has it") {
  Repo repo;
  put(repo.draft + "/a.txt", "two\n");
  put(repo.draft + "/b.txt", "two\n");
  std::string way = GENERATE("committed", "staged", "removed");
  if (way == "removed") repo.git(repo.draft, "rm -q -f a.txt");
  repo.git(repo.draft, way == "staged" ? "add -A" : "commit -q -am second");
  repo.look();
  std::string head = repo.git(repo.ws, "rev-parse HEAD");
  std::erase_if(repo.plan.decisions, [](const Decision& decision) {
    return decision.path.str() == "a.txt";
  });
  auto refused = repo.commit_now();
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code() == Code::kRefused);
  INFO(way << ": " << refused.error().text());
  CHECK(refused.error().text().find("a.txt") != std::string::npos);
  CHECK(refused.error().text().find("b.txt") == std::string::npos);
  CHECK(repo.git(repo.ws, "rev-parse HEAD") == head);
  CHECK(get(repo.ws + "/a.txt") == "one\n");
  // Without its commits the rest is taken.
  std::erase_if(repo.plan.decisions, [](const Decision& decision) {
    return decision.path.str() == ".git";
  });
  auto result = repo.commit_now();
  INFO((result ? "" : result.error().text()));
  REQUIRE(result);
  CHECK(get(repo.ws + "/a.txt") == "one\n");
  CHECK(get(repo.ws + "/b.txt") == "two\n");
  CHECK(repo.git(repo.ws, "rev-parse HEAD") == head);
}

TEST_CASE("a ref that moved in the real repository drifts alone") {
  Repo repo;
  put(repo.draft + "/a.txt", "agent\n");
  repo.git(repo.draft, "commit -q -am agent");
  repo.git(repo.draft, "branch agent-work");
  std::string agent = repo.git(repo.draft, "rev-parse HEAD");
  // The person commits another file meanwhile.
  put(repo.ws + "/b.txt", "person\n");
  repo.git(repo.ws, "commit -q -am person");
  std::string person = repo.git(repo.ws, "rev-parse HEAD");
  repo.look();
  auto result = repo.commit_now();
  INFO((result ? "" : result.error().text()));
  REQUIRE(result);
  CHECK(has_note(*result, "refs/heads/main moved"));
  CHECK(has_note(*result, "index"));
  CHECK(repo.git(repo.ws, "rev-parse main") == person);
  CHECK(repo.git(repo.ws, "rev-parse agent-work") == agent);
  CHECK(get(repo.ws + "/a.txt") == "agent\n");
  CHECK(get(repo.ws + "/b.txt") == "person\n");
  repo.git(repo.ws, "fsck --strict");
  // Nothing of either side is lost: both commits merge.
  repo.git(repo.ws, "checkout -q -- a.txt");
  repo.git(repo.ws, "merge -q --no-edit agent-work");
  CHECK(get(repo.ws + "/a.txt") == "agent\n");
}

TEST_CASE("a ref that a running git holds is left and named") {
  Repo repo;
  put(repo.draft + "/a.txt", "two\n");
  repo.git(repo.draft, "commit -q -am second");
  repo.git(repo.draft, "tag v1");
  put(repo.ws + "/.git/refs/heads/main.lock", "");
  repo.look();
  auto result = repo.commit_now();
  REQUIRE(result);
  CHECK(has_note(*result, "main is locked"));
  CHECK(std::filesystem::exists(repo.ws + "/.git/refs/heads/main.lock"));
  CHECK(repo.git(repo.ws, "rev-parse main") ==
        repo.git(repo.base, "rev-parse main"));
  CHECK(repo.git(repo.ws, "rev-parse v1") ==
        repo.git(repo.draft, "rev-parse HEAD"));
}

TEST_CASE("packing and pruning in the draft removes no real object") {
  Repo repo;
  repo.git(repo.ws, "tag old");
  repo.git(repo.draft, "tag old");
  repo.git(repo.base, "tag old");
  put(repo.draft + "/a.txt", "two\n");
  repo.git(repo.draft, "commit -q -am second");
  repo.git(repo.draft, "tag -d old");
  repo.git(repo.draft, "gc -q --prune=now");
  size_t before = 0;
  for (const auto& entry :
       std::filesystem::recursive_directory_iterator(repo.ws + "/.git/objects"))
    before += entry.is_regular_file();
  repo.look();
  auto result = repo.commit_now();
  INFO((result ? "" : result.error().text()));
  REQUIRE(result);
  size_t after = 0;
  for (const auto& entry :
       std::filesystem::recursive_directory_iterator(repo.ws + "/.git/objects"))
    after += entry.is_regular_file();
  CHECK(after > before);
  CHECK(repo.git(repo.ws, "rev-parse main") ==
        repo.git(repo.draft, "rev-parse main"));
  CHECK(repo.git(repo.ws, "tag").empty());
  repo.git(repo.ws, "fsck --strict");
}

TEST_CASE("a deleted ref does not come back from packed-refs") {
  Repo repo;
  for (const auto& dir : {repo.ws, repo.draft, repo.base}) {
    repo.git(dir, "tag -a -m x t1");
    repo.git(dir, "tag t2");
    repo.git(dir, "pack-refs --all");
  }
  // The same tag object everywhere.
  for (const auto& dir : {repo.draft, repo.base}) {
    std::filesystem::remove_all(dir + "/.git");
    std::string copy = "cp -a " + repo.ws + "/.git " + dir + "/.git";
    REQUIRE(::system(copy.c_str()) == 0);
  }
  repo.git(repo.draft, "tag -d t1");
  repo.look();
  auto result = repo.commit_now();
  INFO((result ? "" : result.error().text()));
  REQUIRE(result);
  CHECK(repo.git(repo.ws, "tag") == "t2");
  repo.git(repo.ws, "fsck --strict");
}

TEST_CASE("a lock file is left by nobody who died") {
  // The first calls take the locks; later ones are tested elsewhere. Without
  // files that have no name, each of the first ones is a place to die at.
  bool nameless = GENERATE(true, false);
  int pace = nameless ? 3 : 1;
  for (int k = 1;; ++k) {
    Repo repo;
    put(repo.draft + "/a.txt", "two\n");
    repo.git(repo.draft, "commit -q -am second");
    repo.look();
    pid_t pid = ::fork();
    if (pid == 0) {
      int n = 0;
      Disk disk([&](const char* call) {
        if (++n == k * pace) ::kill(::getpid(), SIGKILL);
        bool denied = !nameless && call == std::string_view("O_TMPFILE");
        return denied ? EOPNOTSUPP : 0;
      });
      Ground ground = repo.ground(&disk);
      (void)gate::commit(
          {.ground = ground, .set = &repo.set, .plan = &repo.plan, .meta = {}});
      ::_exit(0);
    }
    int status = 0;
    ::waitpid(pid, &status, 0);
    REQUIRE(recover(repo.ground()));
    INFO("killed at call " << k * pace);
    for (const auto& entry :
         std::filesystem::recursive_directory_iterator(repo.ws + "/.git"))
      CHECK(!entry.path().string().ends_with(".lock"));
    CHECK(!std::filesystem::exists(repo.ws + "/.git/.stoplog-HEAD.lock"));
    repo.git(repo.ws, "fsck --strict");
    std::string head = repo.git(repo.ws, "rev-parse HEAD");
    bool is_new = head == repo.git(repo.draft, "rev-parse HEAD");
    CHECK(get(repo.ws + "/a.txt") == (is_new ? "two\n" : "one\n"));
    repo.check_clean();
    if (WIFEXITED(status) || k * pace > 36) break;
  }
}

TEST_CASE("a lock that cannot be looked at is not taken for free or for gone") {
  // Each time that the directory of a lock is opened, once; what fails is tried
  // again by the next command.
  for (int k = 1;; ++k) {
    Repo repo;
    put(repo.draft + "/a.txt", "two\n");
    repo.git(repo.draft, "commit -q -am second");
    repo.look();
    int opened = 0;
    bool failed = false;
    Disk disk([&](const char* call) {
      if (call != std::string_view("openat2") || ++opened != k) return 0;
      failed = true;
      return EMFILE;
    });
    Ground ground = repo.ground(&disk);
    auto result = gate::commit(
        {.ground = ground, .set = &repo.set, .plan = &repo.plan, .meta = {}});
    REQUIRE(recover(repo.ground()));
    INFO("opening " << k << ": " << (result ? "done" : result.error().text()));
    for (const auto& entry :
         std::filesystem::recursive_directory_iterator(repo.ws + "/.git"))
      CHECK(!entry.path().string().ends_with(".lock"));
    bool is_new = repo.git(repo.ws, "rev-parse HEAD") ==
                  repo.git(repo.draft, "rev-parse HEAD");
    CHECK(is_new == result.has_value());
    CHECK(get(repo.ws + "/a.txt") == (is_new ? "two\n" : "one\n"));
    repo.check_clean();
    if (!failed) break;
  }
}

TEST_CASE("lock files belong to refs and the index alone") {
  CHECK(git_lock_for(path(".git/HEAD")) == path(".git/HEAD.lock"));
  CHECK(git_lock_for(path("x/.git/refs/heads/a")) ==
        path("x/.git/refs/heads/a.lock"));
  CHECK(git_lock_for(path(".git/index")) == path(".git/index.lock"));
  CHECK(!git_lock_for(path(".git/config")));
  CHECK(!git_lock_for(path("src/HEAD")));
  CHECK(is_git_object(path(".git/objects/ab/cd")));
  CHECK(!is_git_object(path("objects/ab")));
  CHECK(is_git_object(path(".git/sharedindex.ab")));
  CHECK(!is_git_object(path("sharedindex.ab")));
}

// Its configuration and hooks are changes of their own, and need the directory.
TEST_CASE(
    "a repository made in the draft is committed with its configuration") {
  for (const char* where : {"/sub", "/deep/down/sub"}) {
    Repo repo;
    std::filesystem::create_directories(repo.draft + where);
    repo.git(repo.draft + where, "init -q -b main .");
    repo.git(repo.draft + where, "config user.name T");
    repo.git(repo.draft + where, "config user.email t@example.invalid");
    put(repo.draft + where + "/.git/hooks/pre-push", "#!/bin/sh\n", 0755);
    put(repo.draft + where + "/a", "a\n");
    repo.git(repo.draft + where, "add a");
    repo.git(repo.draft + where, "commit -q -m inner");
    repo.look();
    auto result = repo.commit_now();
    INFO((result ? "" : result.error().text()));
    REQUIRE(result);
    CHECK(repo.git(repo.ws + where, "log --format=%s") == "inner");
    CHECK(repo.git(repo.ws + where, "status --porcelain").empty());
    CHECK(repo.git(repo.ws + where, "config user.name") == "T");
    repo.git(repo.ws + where, "fsck --strict");
    repo.check_clean();
  }
}

// Who approves .git as a whole has seen no name of what is in it.
TEST_CASE("setuid and special files in a git directory are not committed") {
  for (bool whole : {false, true}) {
    Repo repo;
    std::string git = repo.draft + "/" + (whole ? "sub/.git" : ".git");
    if (whole) {
      std::filesystem::create_directory(repo.draft + "/sub");
      repo.git(repo.draft + "/sub", "init -q .");
    }
    put(git + "/objects/zz", "#!/bin/sh\n", 06777);
    std::filesystem::create_directory(git + "/objects/wide");
    ::chmod((git + "/objects/wide").c_str(), 0777);
    put(git + "/objects/wide/y", "y");
    REQUIRE(::mkfifo((git + "/objects/fifo").c_str(), 0644) == 0);
    repo.look(false);  // the FIFO is a danger of its own
    auto result = repo.commit_now();
    INFO((result ? "" : result.error().text()));
    REQUIRE(result);
    std::string real = repo.ws + git.substr(repo.draft.size());
    auto mode = [&](const char* name) {
      struct stat st{};
      REQUIRE(::lstat((real + name).c_str(), &st) == 0);
      return st.st_mode & 07777;
    };
    CHECK(mode("/objects/zz") == 0775);
    CHECK(mode("/objects/wide") == 0775);
    CHECK(mode("/objects/wide/y") == 0644);
    CHECK(!std::filesystem::exists(real + "/objects/fifo"));
    CHECK(has_note(*result, "instead of 6777"));
    repo.check_clean();
  }
}
