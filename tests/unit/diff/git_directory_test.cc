// SPDX-License-Identifier: Apache-2.0
// A git directory by its meaning, and what the real repository knows. Git
// itself makes the repositories; our code never runs it.
#include "catch_shim.h"
#include "diff/git_meta.h"
#include "diff/git_object.h"
#include "diff/git_pack_index.h"
#include "diff/git_split_index.h"
#include "memory_view.h"
#include "repository.h"

using namespace stoplog;
using namespace stoplog::diff;

TEST_CASE("a refreshed index is no change") {
  Repository repo;
  TwoTrees::run("touch '" + repo.draft() + "/a.c'");
  repo.in_draft("update-index --refresh");
  repo.in_draft("status");
  CHECK(TwoTrees::read(repo.base() + "/.git/index") !=
        TwoTrees::read(repo.draft() + "/.git/index"));
  CHECK(repo.build().empty());
}

TEST_CASE("a commit moves the branch and names its subject") {
  Repository repo;
  TwoTrees::write(repo.draft() + "/b.c", "int b;\n");
  repo.in_draft("add b.c");
  repo.in_draft("commit -qm 'add b'");
  TwoTrees::write(repo.draft() + "/b.c", "int c;\n");
  repo.in_draft("commit -qam 'change b'");
  ChangeSet set = repo.build();
  const GitChange& git = git_row(set);
  REQUIRE(git.refs.size() == 1);
  CHECK(git.refs[0].name == "refs/heads/main");
  CHECK(git.refs[0].subjects == std::vector<std::string>{"change b", "add b"});
  CHECK(git.index_added == 1);
  CHECK(git.objects_added == 6);
  CHECK(git.bookkeeping > 0);
  CHECK_FALSE(set.find(path(".git"))->is_danger());
  CHECK(set.changes.size() == 2);  // and b.c
}

TEST_CASE("a new branch gained what the draft made and not what was there") {
  Repository repo;
  repo.in_draft("commit -q --allow-empty -m second");
  repo.in_draft("branch side");
  repo.in_draft("branch old HEAD~1");
  ChangeSet set = repo.build();
  std::map<std::string, std::vector<std::string>> subjects;
  for (const RefMove& ref : git_row(set).refs)
    subjects[ref.name] = ref.subjects;
  using Subjects = std::vector<std::string>;
  CHECK(subjects["refs/heads/main"] == Subjects{"second"});
  CHECK(subjects["refs/heads/side"] == Subjects{"second"});
  CHECK(subjects["refs/heads/old"] == Subjects{"first"});
}

TEST_CASE("staging alone is told by the index and a branch switch by HEAD") {
  Repository repo;
  repo.in_draft("rm -q --cached a.c");
  repo.in_draft("switch -qc topic");
  ChangeSet set = repo.build();
  const GitChange& git = git_row(set);
  CHECK(git.index_removed == 1);
  REQUIRE(git.refs.size() == 2);
  CHECK(git.refs[0].name == "HEAD");
  CHECK(git.refs[0].to == "ref: refs/heads/topic");
  CHECK(git.refs[1].name == "refs/heads/topic");
  CHECK_FALSE(git.refs[1].from);
}

TEST_CASE("packing refs and objects moves nothing") {
  Repository repo;
  repo.in_draft("pack-refs --all");
  ChangeSet set = repo.build();
  CHECK(set.find(path(".git")) == nullptr);
  repo.in_draft("gc -q");
  set = repo.build();
  CHECK(git_row(set).refs.empty());
  CHECK(git_row(set).packs_added == 1);
  CHECK(set.changes.size() == 1);  // no info/refs, which gc writes
  CHECK_FALSE(set.find(path(".git"))->is_danger());
}

TEST_CASE("objects that are in another pack were not removed") {
  Repository repo;
  bool packed = GENERATE(false, true);
  if (packed) {  // packs instead of loose objects
    TwoTrees::write(repo.base() + "/b.c", "int b;\n");
    Repository::git(repo.base(), "repack -q -d");
    Repository::git(repo.base(), "add b.c");
    Repository::git(repo.base(), "commit -qm second");
    Repository::git(repo.base(), "repack -q -d");
    repo.copy_base();
  }
  repo.in_draft("repack -q -a -d");
  ChangeSet set = repo.build();
  const GitChange& git = git_row(set);
  CHECK(git.packs_added == 1);
  CHECK(git.objects_removed + git.packs_removed == 0);
  CHECK(set.find(path(".git"))->risks.empty());
  // The commit brought the pack to the real side: nothing is held any more.
  TwoTrees::run("cp -an '" + repo.draft() + "'/.git/objects/pack/. '" +
                repo.base() + "'/.git/objects/pack/");
  CHECK(repo.build().empty());
  // What is in no pack is told, alone.
  TwoTrees::write(repo.base() + "/c.c", "int lost;\n");
  Repository::git(repo.base(), "hash-object -w c.c");
  TwoTrees::run("cp '" + repo.base() + "/c.c' '" + repo.draft() + "/c.c'");
  set = repo.build();
  CHECK(git_row(set).objects_removed == 1);
  CHECK(set.find(path(".git"))->risks[0].code == "git-objects");
  // Nor does a pack count that has no file of its own.
  TwoTrees::run("rm '" + repo.draft() + "'/.git/objects/pack/*.pack");
  CHECK(git_row(repo.build()).objects_removed +
            git_row(repo.build()).packs_removed >
        1);
}

TEST_CASE("indexes of packs are read within their bounds") {
  Repository repo;
  repo.in_draft("repack -q -a -d");
  std::string index =
      TwoTrees::output("cat '" + repo.draft() + "'/.git/objects/pack/*.idx");
  std::string_view ids = pack_index_ids(index, ObjectFormat::kSha1);
  CHECK(ids.size() == 4 * 20);  // a commit, a tree, two blobs
  for (size_t cut = 0; cut < index.size(); cut++) {
    std::string part = index.substr(0, cut);
    auto got = pack_index_ids(part, ObjectFormat::kSha1);
    CHECK((got.empty() || got == ids));
  }
  CHECK(pack_index_ids("", ObjectFormat::kSha256).empty());
  std::string name = "objects/ab/" + std::string(38, '0');
  CHECK(loose_object_id(name) == "\xab" + std::string(19, '\0'));
  CHECK_FALSE(loose_object_id("objects/pack/x"));
  CHECK_FALSE(loose_object_id("objects/AB/" + std::string(38, '0')));
  CHECK_FALSE(loose_object_id("objects/ab/" + std::string(37, '0')));
}

TEST_CASE("removed objects are told and a removed repository is a danger") {
  Repository repo;
  TwoTrees::run("rm -rf '" + repo.draft() + "/.git/objects'/??");
  ChangeSet set = repo.build();
  const Change& row = *set.find(path(".git"));
  REQUIRE(row.risks.size() == 1);
  CHECK(row.risks[0].code == "git-objects");
  CHECK(row.risks[0].level == Level::kWarn);
  TwoTrees::run("rm -rf '" + repo.draft() + "/.git'");
  set = repo.build();
  REQUIRE(set.find(path(".git")) != nullptr);
  CHECK(set.find(path(".git"))->kind == Kind::kDeleted);
  CHECK(set.find(path(".git"))->is_danger());
}

TEST_CASE("a new repository is one row and no danger") {
  TwoTrees tree;
  Repository::git(tree.draft(), "init -q");
  auto view = tree.view();
  auto set = build_change_set(*view, {});
  REQUIRE(set);
  const Change* row = set->find(path(".git"));
  REQUIRE(row != nullptr);
  CHECK(row->kind == Kind::kAdded);
  for (const Change& change : set->changes) {
    INFO(change.path.str());
    CHECK_FALSE(change.is_danger());
  }
}

TEST_CASE("hooks and configuration are changes of their own") {
  Repository repo;
  TwoTrees::write(repo.draft() + "/.git/hooks/post-checkout", "#!/bin/sh\n");
  repo.in_draft("config core.fsmonitor x");
  ChangeSet set = repo.build();
  REQUIRE(set.changes.size() == 2);
  CHECK(set.find(path(".git/config"))->is_danger());
  CHECK(set.find(path(".git/hooks/post-checkout"))->is_danger());
}

TEST_CASE("the digest follows the meaning of a git directory") {
  Repository repo;
  TwoTrees::write(repo.draft() + "/b.c", "int b;\n");
  repo.in_draft("add b.c");
  auto first = *repo.build().digest;
  TwoTrees::run("touch '" + repo.draft() + "/a.c' '" + repo.draft() + "/b.c'");
  repo.in_draft("update-index --refresh");
  CHECK(*repo.build().digest == first);
  TwoTrees::write(repo.draft() + "/b.c", "int c;\n");
  repo.in_draft("add b.c");
  CHECK(*repo.build().digest != first);
}

TEST_CASE("ignored files are grouped and their deletions listed") {
  Repository repo;
  for (int i = 0; i < 5; i++)
    TwoTrees::write(repo.draft() + "/node_modules/p/" + std::to_string(i),
                    "12345");
  TwoTrees::write(repo.draft() + "/src/x.o", "object");
  TwoTrees::write(repo.base() + "/.env", "SECRET=1\n");
  TwoTrees::write(repo.base() + "/old.o", "object");
  // The agent's own rules count for nothing.
  TwoTrees::write(repo.draft() + "/.gitignore", "*\n");
  TwoTrees::write(repo.draft() + "/hidden.c", "int h;\n");
  ChangeSet set = repo.build();
  CHECK_FALSE(set.find(path("hidden.c"))->ignored);
  CHECK(set.find(path("node_modules/p/0"))->ignored);
  REQUIRE(set.groups.size() == 4);
  CHECK(set.groups[0].path == ".env");
  CHECK(set.groups[0].deleted == 1);
  CHECK(set.groups[1].path == "node_modules/");
  CHECK(set.groups[1].files == 5);
  CHECK(set.groups[1].bytes == 25);
  CHECK(set.groups[3].path == "src/");
  CHECK(set.find(path(".env"))->is_danger());
  CHECK_FALSE(set.find(path("old.o"))->is_danger());  // build output
}

TEST_CASE("held back ignored files do not move the digest but dangers do") {
  Repository repo;
  TwoTrees::write(repo.draft() + "/b.c", "int b;\n");
  auto first = *repo.build().digest;
  TwoTrees::write(repo.draft() + "/x.o", "object");
  CHECK(*repo.build().digest == first);
  DiffOptions all;
  all.include_ignored = true;
  CHECK(*repo.build(all).digest != first);
  TwoTrees::write(repo.draft() + "/node_modules/.vscode/tasks.json", "{}");
  CHECK(*repo.build().digest != first);
  // Who asks for no risks gets the same digest.
  DiffOptions plain;
  plain.risks = false;
  plain.count_lines = false;
  CHECK(*repo.build(plain).digest == *repo.build().digest);
}

TEST_CASE("a deletion that git can restore is no danger") {
  Repository repo;
  TwoTrees::write(repo.base() + "/untracked.c", "int u;\n");
  TwoTrees::run("rm '" + repo.draft() + "/a.c'");
  ChangeSet set = repo.build();
  CHECK_FALSE(set.find(path("a.c"))->is_danger());
  CHECK(set.find(path("untracked.c"))->is_danger());
  // Edited since the last commit: git has another content.
  TwoTrees::write(repo.base() + "/a.c", "int edited;\n");
  set = repo.build();
  CHECK(set.find(path("a.c"))->is_danger());
}

TEST_CASE("a tracked file is not ignored by any rule") {
  Repository repo;
  TwoTrees::write(repo.base() + "/kept.o", "1");
  Repository::git(repo.base(), "add -f kept.o");
  Repository::git(repo.base(), "commit -qm kept");
  TwoTrees::write(repo.draft() + "/kept.o", "2");
  CHECK_FALSE(repo.build().find(path("kept.o"))->ignored);
}

TEST_CASE("index versions two and three and four read the same") {
  Repository repo;
  for (int i = 0; i < 30; i++)
    TwoTrees::write(repo.base() + "/dir/some/name" + std::to_string(i), "x");
  Repository::git(repo.base(), "add -A");
  auto read = [&](const std::string& version) {
    Repository::git(repo.base(), "update-index --index-version " + version);
    return TwoTrees::read(repo.base() + "/.git/index");
  };
  std::string two = read("2"), four = read("4");
  CHECK(two != four);
  auto delta = compare_indexes({two, {}}, {four, {}});
  REQUIRE(delta);
  CHECK_FALSE(delta->any());
  CHECK(compare_indexes({"", {}}, {four, {}})->added == 32);
  Repository::git(repo.base(), "update-index --index-version 2");
  Repository::git(repo.base(), "update-index --skip-worktree a.c");  // v3
  std::string three = TwoTrees::read(repo.base() + "/.git/index");
  CHECK(compare_indexes({two, {}}, {three, {}})->modified == 1);
}

TEST_CASE("a damaged index is refused and said so") {
  Repository repo;
  std::string good = TwoTrees::read(repo.base() + "/.git/index");
  for (size_t cut = 0; cut < good.size() - 20; cut += 3) {
    auto delta = compare_indexes({"", {}}, {good.substr(0, cut), {}});
    CHECK((cut == 0) == delta.has_value());
  }
  TwoTrees::write(repo.draft() + "/.git/index", "DIRCgarbage");
  ChangeSet set = repo.build();
  CHECK_FALSE(git_row(set).unreadable.empty());
}

TEST_CASE("a split index is read with its shared part") {
  Repository repo;
  for (int i = 0; i < 200; i++)
    TwoTrees::write(repo.base() + "/dir/name" + std::to_string(i), "x");
  Repository::git(repo.base(), "add -A");
  Repository::git(repo.base(), "commit -qm many");
  std::string version = GENERATE("2", "4");
  bool split_base = GENERATE(true, false);
  Repository::git(repo.base(), "update-index --index-version " + version);
  if (split_base) Repository::git(repo.base(), "update-index --split-index");
  repo.copy_base();
  // Split alone, or split anew, it says the same.
  repo.in_draft("update-index --split-index");
  CHECK(repo.build().empty());
  for (int i = 20; i < 120; i += 2)
    TwoTrees::write(repo.draft() + "/dir/name" + std::to_string(i), "y");
  TwoTrees::write(repo.draft() + "/dir/name30a", "new");
  TwoTrees::write(repo.draft() + "/zz", "new");
  repo.in_draft("add -A");
  repo.in_draft("rm -q --cached dir/name0 dir/name1 dir/name199");
  CHECK(TwoTrees::read(repo.draft() + "/.git/index").find("link") !=
        std::string::npos);
  ChangeSet set = repo.build();
  const GitChange& git = git_row(set);
  CHECK(git.unreadable.empty());
  CHECK(git.index_modified == 50);
  CHECK(git.index_added == 2);
  CHECK(git.index_removed == 3);
  // Joined again it means the same: what was approved stays approved.
  repo.in_draft("update-index --no-split-index");
  CHECK(git_row(repo.build()).meaning == git.meaning);
}

TEST_CASE("a split index without its shared part is a danger and said so") {
  Repository repo;
  repo.in_draft("update-index --split-index");
  bool gone = GENERATE(true, false);
  std::string shared = "'" + repo.draft() + "'/.git/sharedindex.*";
  TwoTrees::run(gone ? "rm " + shared
                     : "for f in " + shared + "; do echo x >>\"$f\"; done");
  ChangeSet set = repo.build();
  CHECK_FALSE(git_row(set).unreadable.empty());
  bool warned = false;
  for (const Risk& risk : set.find(path(".git"))->risks)
    warned |= risk.code == "git-unreadable" && risk.level == Level::kDanger &&
              risk.message.find("the index changed: ") != std::string::npos;
  CHECK(warned);
}

TEST_CASE("a damaged split index is refused at every byte") {
  Repository repo;
  for (int i = 0; i < 100; i++)
    TwoTrees::write(repo.base() + "/name" + std::to_string(i), "x");
  Repository::git(repo.base(), "add -A");
  Repository::git(repo.base(), "update-index --split-index");
  Repository::git(repo.base(), "rm -q --cached name5 name77");
  std::string index = TwoTrees::read(repo.base() + "/.git/index");
  std::string shared =
      TwoTrees::output("cat '" + repo.base() + "'/.git/sharedindex.*");
  auto give = [&](const std::string&) -> Result<std::string> { return shared; };
  REQUIRE(compare_indexes({"", {}}, {index, give})->added == 100);
  CHECK_FALSE(compare_indexes({"", {}}, {index, {}}));
  // Up to the end of the link; what follows is for git alone.
  size_t link = index.find("link");
  size_t end = link + 8 + static_cast<unsigned char>(index[link + 7]);
  for (size_t cut = 1; cut < end; cut++) {
    if (cut == 12 + 20) continue;  // a whole index without entries
    CHECK_FALSE(compare_indexes({"", {}}, {index.substr(0, cut), give}));
  }
  // Any other bytes in the bitmaps: an answer or a refusal, nothing else.
  for (size_t at = link; at < index.size(); at++)
    for (int bit = 0; bit < 8; bit++) {
      std::string other = index;
      other[at] = static_cast<char>(other[at] ^ (1 << bit));
      auto delta = compare_indexes({"", {}}, {other, give});
      if (delta) CHECK(delta->added <= 200);
    }
}

TEST_CASE("a sparse index is read with whole directories as entries") {
  Repository repo;
  for (const char* file : {"d/x", "e/y", "e/z"})
    TwoTrees::write(repo.base() + "/" + file, "1");
  Repository::git(repo.base(), "add -A");
  Repository::git(repo.base(), "commit -qm more");
  Repository::git(
      repo.base(),
      "-c index.sparse=true sparse-checkout set --cone --sparse-index d");
  repo.copy_base();
  CHECK(repo.build().empty());
  repo.in_draft("update-index --refresh");
  TwoTrees::write(repo.draft() + "/d/new", "2");
  repo.in_draft("add d/new");
  ChangeSet set = repo.build();
  CHECK(git_row(set).unreadable.empty());
  CHECK(git_row(set).index_added == 1);
  CHECK(git_row(set).index_removed == 0);
}

TEST_CASE("a repository of SHA-256 names is understood") {
  TwoTrees trees;
  Repository::git(trees.base(), "init -q -b main --object-format=sha256");
  for (int i = 0; i < 5; i++)
    TwoTrees::write(trees.base() + "/file" + std::to_string(i), "x");
  Repository::git(trees.base(), "add -A");
  Repository::git(trees.base(), "commit -qm first");
  Repository::git(trees.base(), "pack-refs --all");
  std::string index = TwoTrees::read(trees.base() + "/.git/index");
  // Neither is taken for the other.
  CHECK_FALSE(compare_indexes({"", {}}, {index, {}}, ObjectFormat::kSha1));
  CHECK(compare_indexes({"", {}}, {index, {}}, ObjectFormat::kSha256)->added ==
        5);
  trees.copy_base();
  TwoTrees::write(trees.draft() + "/file9", "x");
  Repository::git(trees.draft(), "add -A");
  Repository::git(trees.draft(), "commit -qm second");
  auto view = trees.view();
  auto set = build_change_set(*view, {});
  REQUIRE(set);
  const GitChange& git = git_row(*set);
  CHECK(git.unreadable.empty());
  CHECK(git.index_added == 1);
  REQUIRE(git.refs.size() == 1);
  CHECK(git.refs[0].from.value_or("").size() == 64);
  CHECK(git.refs[0].subjects == std::vector<std::string>{"second"});
}

TEST_CASE("the agent's config does not decide how the index is read") {
  Repository repo;
  TwoTrees::write(repo.draft() + "/b.c", "int b;\n");
  repo.in_draft("add b.c");
  TwoTrees::run("printf '[extensions]\\nobjectformat = sha256\\n' >>'" +
                repo.draft() + "/.git/config'");
  ChangeSet set = repo.build();
  CHECK(git_row(set).unreadable.empty());
  CHECK(git_row(set).index_added == 1);
  CHECK(set.find(path(".git/config"))->is_danger());
}

TEST_CASE("refs are read strictly") {
  CHECK(parse_ref("ref: refs/heads/x\n") == "ref: refs/heads/x");
  CHECK(parse_ref(std::string(40, 'a') + "\n") == std::string(40, 'a'));
  CHECK_FALSE(parse_ref("ref: /etc/passwd\n"));
  CHECK_FALSE(parse_ref("nonsense"));
  CHECK(parse_packed_refs("# pack-refs\n" + std::string(40, '0') +
                          " refs/heads/a\n^" + std::string(40, '1') + "\n")
            ->size() == 1);
  CHECK_FALSE(parse_packed_refs("zzz\n"));
  CHECK_FALSE(parse_loose_commit("not deflated"));
}
