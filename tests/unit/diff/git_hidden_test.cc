// SPDX-License-Identifier: Apache-2.0
// What could hide behind the one row of a git directory: links, forged objects,
// refs behind others, content that no file of the tree shows.
#include "catch_shim.h"
#include "diff/canonical.h"
#include "diff/git_meta.h"
#include "diff/git_pack.h"
#include "diff/git_pack_index.h"
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

TEST_CASE("refs behind many others are named and replacements are a danger") {
  Repository repo;
  repo.in_draft("commit -q --allow-empty -m second");
  for (const char* name : {"a1", "a2", "a3", "a4", "a5"})
    repo.in_draft(std::string("branch ") + name + " HEAD~1");
  repo.in_draft("replace HEAD~1 HEAD");
  ChangeSet set = repo.build();
  const GitChange& git = git_row(set);
  REQUIRE(git.refs.size() == 7);
  CHECK(git.refs[0].name == "refs/heads/main");
  CHECK(git.refs[0].subjects == std::vector<std::string>{"second"});
  CHECK(git.refs[1].name.starts_with("refs/replace/"));
  CHECK(git.summary().find("main ") != std::string::npos);
  CHECK(has_risk(*set.find(path(".git")), Level::kDanger, "git-replace"));
}

TEST_CASE("files that git shall not look at are a danger") {
  for (const char* flag : {"--assume-unchanged", "--skip-worktree"}) {
    Repository repo;
    repo.in_draft(std::string("update-index ") + flag + " a.c");
    ChangeSet set = repo.build();
    CHECK(has_risk(*set.find(path(".git")), Level::kDanger, "git-hidden"));
    // What the user set is not the draft's.
    Repository own;
    Repository::git(own.base(), std::string("update-index ") + flag + " a.c");
    own.copy_base();
    own.in_draft("rm -q --cached .gitignore");
    set = own.build();
    CHECK_FALSE(
        has_risk(*set.find(path(".git")), Level::kDanger, "git-hidden"));
  }
}

TEST_CASE("an object that is not what its name says is a danger") {
  std::string format = GENERATE("", "--object-format=sha256 ");
  TwoTrees tree;
  Repository::git(tree.base(), "init -q -b main " + format + ".");
  tree.copy_base();
  std::string evil = TwoTrees::output(
      "cd '" + tree.draft() +
      "' && git init -q $(true) && printf EVIL | git hash-object -w --stdin");
  std::string mine = TwoTrees::output("cd '" + tree.draft() +
                                      "' && printf mine | git hash-object "
                                      "--stdin");
  while (!evil.empty() && evil.back() == '\n') evil.pop_back();
  while (!mine.empty() && mine.back() == '\n') mine.pop_back();
  auto at = [](const std::string& id) {
    return ".git/objects/" + id.substr(0, 2) + "/" + id.substr(2);
  };
  auto build = [&] {
    auto view = tree.view();
    auto set = build_change_set(*view, {});
    REQUIRE(set);
    return std::move(*set);
  };
  CHECK(build().find(path(".git"))->risks.empty());
  REQUIRE(TwoTrees::run("cd '" + tree.draft() + "' && mkdir -p $(dirname " +
                        at(mine) + ") && cp " + at(evil) + " " + at(mine)) ==
          0);
  ChangeSet set = build();
  CHECK(has_risk(*set.find(path(".git")), Level::kDanger, "git-object"));
}

TEST_CASE("a pack whose index lies is a danger and one of git's is none") {
  Repository repo;
  for (int i = 0; i < 30; i++) {
    std::string text;
    for (int n = 0; n < 300; n++)
      text += "line " + std::to_string(n == i ? -n : n) + "\n";
    TwoTrees::write(repo.draft() + "/b.c", text);
    repo.in_draft("add b.c");
    repo.in_draft("commit -qm 'change " + std::to_string(i) + "'");
  }
  repo.in_draft("gc -q");
  ChangeSet set = repo.build();
  check_quiet(set);
  CHECK(git_row(set).packs_added == 1);
  // By offset and by name, deltas are understood.
  repo.in_draft("-c repack.usedeltabaseoffset=false repack -q -a -d -f");
  check_quiet(repo.build());
  // Two names change their places: what git then reads is another object.
  std::string file = TwoTrees::output("echo -n '" + repo.draft() +
                                      "'/.git/objects/pack/*.idx");
  std::string index = TwoTrees::read(file);
  std::string_view ids = pack_index_ids(index, ObjectFormat::kSha1);
  size_t count = ids.size() / 20;
  REQUIRE(count > 90);
  size_t offsets = 8 + 1024 + count * 24;
  std::string lie = index;
  for (size_t i = 0; i < 4; i++)
    std::swap(lie[offsets + i], lie[offsets + 4 + i]);
  TwoTrees::run("chmod u+w '" + file + "'");
  TwoTrees::write(file, lie);
  set = repo.build();
  CHECK(has_risk(*set.find(path(".git")), Level::kDanger, "git-object"));
}

TEST_CASE("packs are read within their bounds, damaged at any byte") {
  Repository repo;
  TwoTrees::write(repo.draft() + "/b.c", std::string(3000, 'x') + "1\n");
  repo.in_draft("add b.c");
  repo.in_draft("commit -qm b");
  TwoTrees::write(repo.draft() + "/b.c", std::string(3000, 'x') + "2\n");
  repo.in_draft("commit -qam c");
  repo.in_draft("repack -q -a -d -f");
  std::string where = "cat '" + repo.draft() + "'/.git/objects/pack/*.";
  std::string pack = TwoTrees::output(where + "pack");
  std::string index = TwoTrees::output(where + "idx");
  auto check = [](std::string bytes, std::string idx, uint64_t left) {
    auto opened = Pack::open(std::make_shared<TextContent>(std::move(bytes)),
                             std::move(idx), ObjectFormat::kSha1);
    return opened ? opened->check(left) : Verdict::kFalse;
  };
  CHECK(check(pack, index, kObjectBudget) == Verdict::kTrue);
  CHECK(check(pack, index, 5000) == Verdict::kUnknown);
  CHECK(check(pack, index, 0) == Verdict::kUnknown);
  const auto objects = static_cast<unsigned char>(index[8 + 4 * 256 - 1]);
  REQUIRE(objects > 4);
  int padding = 0;
  for (size_t at = 0; at < pack.size() - 20; at++) {
    std::string bytes = pack;
    bytes[at] = static_cast<char>(bytes[at] ^ 0x11);
    // The version may be 2 or 3.
    if (at != 7 && check(bytes, index, kObjectBudget) == Verdict::kTrue)
      padding++;
    CHECK(check(pack.substr(0, at), index, kObjectBudget) != Verdict::kTrue);
  }
  // Of the last byte of each deflated stream some bits may be nobody's.
  CHECK(padding < objects);
  for (size_t cut = 0; cut < index.size(); cut++)
    CHECK(check(pack, index.substr(0, cut), kObjectBudget) != Verdict::kTrue);
}

TEST_CASE("objects that inflate without end are not verified but said so") {
  Repository repo;
  TwoTrees::run("head -c 300M /dev/zero >'" + repo.draft() + "/zero'");
  repo.in_draft("hash-object -w zero");
  TwoTrees::run("rm '" + repo.draft() + "/zero'");
  ChangeSet set = repo.build();
  CHECK(has_risk(*set.find(path(".git")), Level::kDanger, "git-unverified"));
}
