// SPDX-License-Identifier: Apache-2.0
// Git directories inside of others, for submodules and work trees, and a
// workspace whose ".git" is a file. Git itself makes them.
#include "catch_shim.h"
#include "repository.h"

using namespace stoplog;
using namespace stoplog::diff;

TEST_CASE("a submodule and a work tree are understood as a repository is") {
  Repository repo;
  Repository::git(repo.top(), "init -q -b main library");
  Repository::git(repo.top() + "/library",
                  "commit -q --allow-empty -m library");
  Repository::git(repo.base(),
                  "-c protocol.file.allow=always submodule add -q --name "
                  "libs/x ../library lib");
  TwoTrees::write(repo.base() + "/lib/f", "1\n");
  Repository::git(repo.base() + "/lib", "add f");
  Repository::git(repo.base() + "/lib", "commit -qm 'file'");
  Repository::git(repo.base(), "commit -qam sub");
  Repository::git(repo.base(), "worktree add -q ../other");
  TwoTrees::run("rm -rf '" + repo.draft() + "' && mkdir '" + repo.draft() +
                "'");
  repo.copy_base();
  // A refresh of either index is no change.
  TwoTrees::run("touch '" + repo.draft() + "/lib/f'");
  Repository::git(repo.draft() + "/lib", "update-index --refresh");
  CHECK(repo.build().empty());
  // A commit in the submodule is a row of its own, by its meaning.
  TwoTrees::write(repo.draft() + "/lib/f", "2\n");
  Repository::git(repo.draft() + "/lib", "commit -qam 'in the library'");
  ChangeSet set = repo.build();
  const Change* row = set.find(path(".git/modules/libs/x"));
  REQUIRE(row != nullptr);
  REQUIRE(row->git != nullptr);
  CHECK(row->shown_path() == ".git/modules/libs/x/");
  REQUIRE(row->git->refs.size() == 1);
  CHECK(row->git->refs[0].subjects ==
        std::vector<std::string>{"in the library"});
  CHECK(row->git->others.empty());
  CHECK(row->risks.empty());
  CHECK(set.find(path(".git")) == nullptr);
  // What is obeyed stays a danger of its own.
  TwoTrees::write(repo.draft() + "/.git/modules/libs/x/hooks/post-checkout",
                  "x");
  TwoTrees::write(repo.draft() + "/.git/worktrees/other/HEAD",
                  "ref: refs/heads/main\n");
  set = repo.build();
  CHECK(set.find(path(".git/modules/libs/x/hooks/post-checkout"))->is_danger());
  row = set.find(path(".git/worktrees/other"));
  REQUIRE(row != nullptr);
  REQUIRE(row->git != nullptr);
  CHECK(row->git->refs[0].to == "ref: refs/heads/main");
  // One that the draft adds is the repository's own.
  TwoTrees::write(repo.draft() + "/.git/modules/new/HEAD", "ref: x\n");
  set = repo.build();
  CHECK(set.find(path(".git/modules/new")) == nullptr);
  CHECK(git_row(set).others.size() == 1);
}

TEST_CASE("a linked work tree's own rules and history count") {
  Repository repo;
  TwoTrees::write(repo.base() + "/.git/info/exclude", "*.tmp\n");
  TwoTrees::run("rm -rf '" + repo.draft() + "'");
  Repository::git(repo.base(), "worktree add -q ../linked");
  REQUIRE(TwoTrees::run("cp -a '" + repo.top() + "/linked' '" + repo.draft() +
                        "'") == 0);
  TwoTrees::write(repo.draft() + "/x.tmp", "x");
  TwoTrees::write(repo.draft() + "/y.o", "x");
  TwoTrees::write(repo.draft() + "/z.c", "x");
  TwoTrees::run("rm '" + repo.draft() + "/a.c'");
  Fd before =
      *sys::openat(AT_FDCWD, repo.top() + "/linked", O_RDONLY | O_DIRECTORY);
  Fd after = *sys::openat(AT_FDCWD, repo.draft(), O_RDONLY | O_DIRECTORY);
  auto view = fs::view_of_directories(before.get(), after.get());
  auto build = [&] {
    auto set = build_change_set(*view, {.real_root = repo.top() + "/linked"});
    REQUIRE(set);
    return std::move(*set);
  };
  ChangeSet set = build();
  CHECK(set.find(path("x.tmp"))->ignored);
  CHECK(set.find(path("y.o"))->ignored);
  CHECK_FALSE(set.find(path("z.c"))->ignored);
  CHECK_FALSE(set.find(path("a.c"))->is_danger());  // git has it
  TwoTrees::write(repo.draft() + "/.git", "gitdir: /elsewhere\n");
  CHECK(build().find(path(".git"))->is_danger());
}
