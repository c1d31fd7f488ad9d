// SPDX-License-Identifier: Apache-2.0
// Refs as git keeps them, in files and packed, on both sides of a commit and of
// its undo.
#include "gate/git_paths.h"
#include "repo_fixture.h"

using namespace stoplog;
using namespace stoplog::gate;
using namespace stoplog::gate::test;

namespace {

std::string told(const Result<CommitResult>& result) {
  if (!result) return result.error().text();
  std::string text;
  for (const std::string& note : result->notes) text += note + "; ";
  return text;
}

void commit_in(Repo& repo) {
  repo.look();
  auto result = repo.commit_now();
  INFO(told(result));
  REQUIRE(result);
  CHECK(result->notes.empty());
}

void undo_in(Repo& repo, std::optional<uint64_t> number = {}) {
  auto undone = repo.undo_now(number);
  INFO(told(undone));
  REQUIRE(undone);
  repo.git(repo.ws, "fsck --strict");
  repo.check_clean();
  for (const auto& entry :
       std::filesystem::recursive_directory_iterator(repo.ws + "/.git"))
    CHECK(!entry.path().string().ends_with(".lock"));
}

std::string refs(const std::string& dir) {
  return Repo::git(dir, "for-each-ref --format='%(refname) %(objectname)'");
}

}  // namespace

TEST_CASE("a branch whose name was a branch's directory, and the other way") {
  bool packed = GENERATE(false, true);
  std::vector<std::string> before{"branch a", "branch b/x/y", "branch b/z"};
  if (packed) before.emplace_back("pack-refs --all");
  Repo repo("", before);
  std::string old_refs = refs(repo.ws);
  repo.git(repo.draft, "branch -q -D a b/x/y b/z");
  repo.git(repo.draft, "branch a/under");
  repo.git(repo.draft, "branch b");
  commit_in(repo);
  CHECK(refs(repo.ws) == refs(repo.draft));
  repo.git(repo.ws, "fsck --strict");
  if (GENERATE(false, true)) repo.git(repo.ws, "gc -q");
  undo_in(repo);
  CHECK(refs(repo.ws) == old_refs);
  undo_in(repo, 2);
  CHECK(refs(repo.ws) == refs(repo.draft));
}

TEST_CASE("a ref that cannot stand beside one of the real repository is left") {
  bool packed = GENERATE(false, true);
  Repo repo;
  put(repo.draft + "/a.txt", "two\n");
  repo.git(repo.draft, "branch a/under");
  repo.git(repo.draft, "branch b");
  repo.git(repo.draft, "branch free");
  repo.git(repo.ws, "branch a");
  repo.git(repo.ws, "branch b/under");
  if (packed) repo.git(repo.ws, "pack-refs --all");
  repo.look();
  auto result = repo.commit_now();
  INFO(told(result));
  REQUIRE(result);
  CHECK(has_note(*result, "a/under cannot stand beside refs/heads/a "));
  CHECK(has_note(*result, "b cannot stand beside refs/heads/b/under "));
  CHECK(repo.git(repo.ws, "branch --format='%(refname:short)'") ==
        "a\nb/under\nfree\nmain");
  CHECK(get(repo.ws + "/a.txt") == "two\n");
  repo.git(repo.ws, "fsck --strict");
}

TEST_CASE("what is no ref in the draft is not written to the real one") {
  Repo repo("", {"branch a", "branch b"});
  std::string old_refs = refs(repo.ws);
  put(repo.draft + "/.git/refs/heads/a", "garbage\n");
  put(repo.draft + "/.git/refs/heads/new", "ref: ../../etc\n");
  put(repo.draft + "/a.txt", "two\n");
  bool by_name = GENERATE(false, true);
  if (!by_name) {
    std::filesystem::remove(repo.draft + "/.git/refs/heads/b");
    std::filesystem::create_symlink("main", repo.draft + "/.git/refs/heads/b");
  }
  repo.look(by_name);  // both are dangers
  auto result = repo.commit_now();
  INFO(told(result));
  REQUIRE(result);
  if (by_name)
    for (const char* name : {"heads/a", "heads/new"})
      CHECK(has_note(*result, fmt::format("refs/{} is no ref", name)));
  CHECK(refs(repo.ws) == old_refs);
  CHECK(get(repo.ws + "/a.txt") == "two\n");
}

TEST_CASE("what git did since does not stand in the way of an undo") {
  Repo repo("", {"tag t1", "tag t2", "pack-refs --all"});
  std::string old_refs = refs(repo.ws);
  put(repo.draft + "/a.txt", "two\n");
  repo.git(repo.draft, "commit -q -am second");
  repo.git(repo.draft, "branch deep/new");
  repo.git(repo.draft, "tag -d t1");
  commit_in(repo);
  std::string new_refs = refs(repo.ws);
  // Logs and messages of another branch, and everything packed.
  repo.git(repo.ws, "checkout -q -b side");
  repo.git(repo.ws, "commit -q --allow-empty -m aside");
  repo.git(repo.ws, "checkout -q main");
  repo.git(repo.ws, "gc -q");
  std::string side = "refs/heads/side " + repo.git(repo.ws, "rev-parse side");
  undo_in(repo);
  CHECK(refs(repo.ws) == old_refs.substr(0, old_refs.find('\n') + 1) + side +
                             old_refs.substr(old_refs.find('\n')));
  CHECK(get(repo.ws + "/a.txt") == "one\n");
  CHECK(repo.git(repo.ws, "status --porcelain").empty());
  CHECK(repo.git(repo.ws, "reflog side --format=%gs").find("aside") !=
        std::string::npos);
  repo.git(repo.ws, "pack-refs --all");
  undo_in(repo, 2);
  repo.git(repo.ws, "branch -q -D side");
  CHECK(refs(repo.ws) == new_refs);
}

TEST_CASE("an undo does not take a ref from under who moved it") {
  Repo repo;
  put(repo.draft + "/a.txt", "two\n");
  repo.git(repo.draft, "commit -q -am second");
  repo.git(repo.draft, "branch made");
  commit_in(repo);
  bool packed = GENERATE(false, true);
  bool made = GENERATE(false, true);
  repo.git(repo.ws,
           made ? "branch -f made main~" : "commit -q --allow-empty -m on");
  if (packed) repo.git(repo.ws, "pack-refs --all");
  auto before = refs(repo.ws);
  auto undone = repo.undo_now();
  REQUIRE(!undone);
  CHECK(undone.error().code() == Code::kDrift);
  CHECK(undone.error().text().find(made ? "heads/made" : "heads/main") !=
        std::string::npos);
  CHECK(refs(repo.ws) == before);
  CHECK(get(repo.ws + "/a.txt") == "two\n");
  repo.check_clean();
}

TEST_CASE("what a path in a git directory is to git") {
  CHECK(within_git(path("a/.git/logs/HEAD")) == "logs/HEAD");
  CHECK(within_git(path(".git/modules/a/b/logs/refs/heads/m")) ==
        "logs/refs/heads/m");
  CHECK(within_git(path(".git/modules/logs/refs/heads/m")) == "refs/heads/m");
  CHECK(within_git(path(".git/worktrees/w/HEAD")) == "HEAD");
  CHECK(git_directory_of(path(".git/modules/a/b/refs/heads/m")) ==
        path(".git/modules/a/b"));
  CHECK(git_directory_of(path("x/.git/HEAD")) == path("x/.git"));
}
