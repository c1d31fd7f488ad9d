// SPDX-License-Identifier: Apache-2.0
// The filter may say "maybe" too often, and never "no" of what git ignores.
#include <random>
#include <set>

#include "base/strings.h"
#include "catch_shim.h"
#include "diff/ignore_filter.h"
#include "two_trees.h"

using namespace stoplog;
using namespace stoplog::diff;

namespace {

class WorkTree : public TwoTrees {
 public:
  WorkTree() {
    ::setenv("HOME", top().c_str(), 1);
    ::unsetenv("XDG_CONFIG_HOME");
    REQUIRE(run("git init -q '" + base() + "'") == 0);
  }
  void rules(const std::string& where, std::string_view text) {
    write(base() + "/" + where, text);
  }
  bool may_ignore(std::string_view path) {
    return IgnoreFilter(base()).may_ignore(path);
  }
  // Those of `paths` that git ignores, asked at once.
  std::set<std::string> ignored(const std::vector<std::string>& paths) {
    std::string list;
    for (const std::string& path : paths) list += path + "\n";
    write(top() + "/list", list);
    std::string said =
        output("cd '" + base() + "' && git check-ignore --no-index --stdin <'" +
               top() + "/list'");
    std::set<std::string> out;
    for (std::string_view line : split(said, '\n'))
      if (!line.empty()) out.insert(std::string(line));
    return out;
  }
};

}  // namespace

TEST_CASE("ordinary rules leave sources alone without a library") {
  WorkTree tree;
  tree.rules(".gitignore",
             "*.o\nbuild/\n# note\n*.py[cod]\n/dist\n!keep.o\r\n");
  tree.rules("sub/.gitignore", "local.txt\n");
  CHECK_FALSE(tree.may_ignore("src/main.c"));
  CHECK_FALSE(tree.may_ignore("sub/other.txt"));
  CHECK_FALSE(tree.may_ignore("local.txt"));
  CHECK_FALSE(tree.may_ignore("src/dist"));
  for (const char* path :
       {"a.o", "x/y/a.o", "build/x", "A.O", "m.pyc", "dist/a", "sub/local.txt",
        "sub/x/local.txt", "keep.o"})
    CHECK(tree.may_ignore(path));
}

TEST_CASE("rules from elsewhere and odd files are for the library") {
  WorkTree tree;
  tree.rules(".gitignore", "*.o\n");
  CHECK_FALSE(tree.may_ignore("a.c"));
  tree.rules(".git/info/exclude", "a.*\n");
  CHECK(tree.may_ignore("a.c"));
  tree.rules(".git/info/exclude", "");
  TwoTrees::write(tree.top() + "/.config/git/ignore", "a.c\n");
  CHECK(tree.may_ignore("a.c"));
  TwoTrees::write(tree.top() + "/.config/git/ignore", "");
  CHECK_FALSE(tree.may_ignore("a.c"));
  for (const char* odd : {"x[[:alpha:]]\n", "trailing \n", " leading\n", "a[\n",
                          "./a\n", "\xEF\xBB\xBF*.c\n"}) {
    tree.rules(".gitignore", odd);
    CHECK(tree.may_ignore("a.c"));
  }
  tree.rules(".gitignore", "");
  CHECK_FALSE(tree.may_ignore("a.c"));
  TwoTrees::write(tree.top() + "/.gitconfig",
                  "[core]\n\texcludesFile = /tmp/x\n");
  CHECK(tree.may_ignore("a.c"));
  TwoTrees::write(tree.top() + "/.gitconfig", "[include]\n\tpath = x\n");
  CHECK(tree.may_ignore("a.c"));
  TwoTrees::write(tree.top() + "/.gitconfig", "");
  CHECK_FALSE(tree.may_ignore("a.c"));
  TwoTrees::run("rm -r '" + tree.base() + "/.git'");
  TwoTrees::write(tree.base() + "/.git", "gitdir: elsewhere\n");
  CHECK(tree.may_ignore("a.c"));
}

TEST_CASE("what git ignores is never passed by the filter") {
  WorkTree tree;
  std::mt19937 engine(12);
  auto pick = [&](std::initializer_list<const char*> from) {
    return std::string(from.begin()[engine() % from.size()]);
  };
  size_t ignored = 0, passed = 0;
  for (int round = 0; round < 25; round++) {
    auto some_rules = [&] {
      std::string text;
      for (size_t n = engine() % 4; n > 0; n--) {
        if (engine() % 5 == 0) text += "!";
        if (engine() % 4 == 0) text += "/";
        for (size_t parts = engine() % 3 + 1; parts > 0; parts--) {
          text += pick({"a", "b*", "*", "**", "?", "[ab]", "[!a]", "ab", "\\a",
                        "*b", "a**b", "B"});
          if (parts > 1 || engine() % 5 == 0) text += "/";
        }
        text += "\n";
      }
      return text;
    };
    tree.rules(".gitignore", some_rules());
    tree.rules("a/.gitignore", some_rules());
    tree.rules("a/b/.gitignore", some_rules());
    std::vector<std::string> paths;
    for (int i = 0; i < 60; i++) {
      std::string path = pick({"a", "b", "ab", "ba", "B"});
      for (size_t n = engine() % 4; n > 0; n--)
        path += "/" + pick({"a", "b", "ab", "ba", "B", "c"});
      paths.push_back(path);
    }
    IgnoreFilter filter(tree.base());
    std::set<std::string> git = tree.ignored(paths);
    for (const std::string& path : paths) {
      bool maybe = filter.may_ignore(path);
      ignored += git.contains(path);
      passed += !maybe;
      INFO(path << " by " << TwoTrees::read(tree.base() + "/.gitignore")
                << "and " << TwoTrees::read(tree.base() + "/a/.gitignore"));
      CHECK((maybe || !git.contains(path)));
    }
  }
  CHECK(ignored > 100);
  CHECK(passed > 100);
}
