// SPDX-License-Identifier: Apache-2.0
// What could hide behind the one row of a git directory: links, forged objects,
// refs behind others, content that no file of the tree shows.
#include "catch_shim.h"
#include "diff/canonical.h"
#include "diff/git_meta.h"
#include "memory_view.h"
#include "repository.h"

using namespace stoplog;
using namespace stoplog::diff;

namespace {

bool has_risk(const Change& change, Level level, std::string_view code) {
  for (const Risk& risk : change.risks)
    if (risk.level == level && risk.code == code) return true;
  return false;
}

void check_quiet(const ChangeSet& set) {
  for (const Change& change : set.changes) {
    INFO(change.path.str());
    for (const Risk& risk : change.risks) {
      INFO(risk.code << ": " << risk.message);
      CHECK(risk.level != Level::kDanger);
    }
  }
}

}  // namespace

TEST_CASE("a link where git writes its notes is a danger of its own") {
  Repository repo;
  repo.in_draft("commit -q --allow-empty -m second");
  for (const char* name : {"COMMIT_EDITMSG", "ORIG_HEAD", "FETCH_HEAD",
                           "logs/HEAD", "objects/info/commit-graph", "index"})
    TwoTrees::run("cd '" + repo.draft() + "/.git' && ln -sfn /outside/x " +
                  name);
  TwoTrees::run("cd '" + repo.draft() +
                "/.git' && ln -s ../inside refs/x && "
                "mkfifo logs/fifo");
  ChangeSet set = repo.build();
  for (const char* name :
       {"COMMIT_EDITMSG", "ORIG_HEAD", "FETCH_HEAD", "logs/HEAD",
        "objects/info/commit-graph", "index", "refs/x", "logs/fifo"}) {
    INFO(name);
    const Change* row = set.find(path(std::string(".git/") + name));
    REQUIRE(row != nullptr);
    CHECK(has_risk(*row, Level::kDanger, "git-part"));
  }
  CHECK(has_risk(*set.find(path(".git/logs/HEAD")), Level::kDanger,
                 "symlink-outside"));
  CHECK(has_risk(*set.find(path(".git/logs/fifo")), Level::kDanger,
                 "special-file"));
  // The commit itself is told as ever.
  CHECK(git_row(set).refs.size() == 1);
}

TEST_CASE("what a commit of a git directory writes is in its digest") {
  Repository repo;
  repo.in_draft("commit -q --allow-empty -m second");
  auto digest = [&] { return change_digest(*repo.build().find(path(".git"))); };
  Sha256Digest first = digest();
  CHECK(digest() == first);
  std::string git = repo.draft() + "/.git/";
  TwoTrees::write(git + "COMMIT_EDITMSG", "another\n");
  Sha256Digest second = digest();
  CHECK(second != first);
  TwoTrees::write(git + "logs/refs/heads/x", "another\n");
  Sha256Digest third = digest();
  CHECK(third != second);
  TwoTrees::run("chmod 755 '" + git + "logs/refs/heads/x'");
  Sha256Digest fourth = digest();
  CHECK(fourth != third);
  TwoTrees::run("mkdir '" + git + "logs/refs/heads/y'");
  Sha256Digest fifth = digest();
  CHECK(fifth != fourth);
  TwoTrees::run("rm '" + git + "logs/HEAD'");
  CHECK(digest() != fifth);
}
