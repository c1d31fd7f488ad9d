// SPDX-License-Identifier: Apache-2.0
#include "base/glob.h"

#include "catch_shim.h"

using namespace stoplog;

namespace {
bool matches(const char* pattern, std::string_view path, bool is_dir = false) {
  return Glob::parse(pattern).value().matches(path, is_dir);
}
}  // namespace

TEST_CASE("a pattern without a slash matches a name at any depth") {
  CHECK(matches(".env", ".env"));
  CHECK(matches(".env", "a/b/.env"));
  CHECK(matches(".env.*", "a/.env.local"));
  CHECK_FALSE(matches(".env", "a/.env/x"));
  CHECK(matches("*.c", "src/a.c"));
  CHECK_FALSE(matches("*.c", "src/a.cc"));
  CHECK(matches("?", "a/x"));
  CHECK_FALSE(matches("?", "a/xy"));
}

TEST_CASE("a pattern with a slash is anchored at the top") {
  CHECK(matches("/a", "a"));
  CHECK_FALSE(matches("/a", "b/a"));
  CHECK(matches("a/*.c", "a/x.c"));
  CHECK_FALSE(matches("a/*.c", "a/b/x.c"));
  CHECK_FALSE(matches("a/*.c", "z/a/x.c"));
}

TEST_CASE("two stars match any number of components") {
  CHECK(matches("secrets/**", "secrets/a/b"));
  CHECK_FALSE(matches("secrets/**", "secrets", true));
  CHECK(matches("**/x", "x"));
  CHECK(matches("**/x", "a/b/x"));
  CHECK(matches("a/**/b", "a/b"));
  CHECK(matches("a/**/b", "a/1/2/b"));
  CHECK_FALSE(matches("a/**/b", "a/1/2/c"));
  CHECK(matches("**", "a/b"));
  CHECK(matches("a/**/b/**/c", "a/b/b/x/b/c"));
  CHECK(matches("a**b", "axyb"));
}

TEST_CASE("a trailing slash matches directories only") {
  CHECK(matches("build/", "x/build", true));
  CHECK_FALSE(matches("build/", "x/build", false));
}

TEST_CASE("sets and escapes") {
  CHECK(matches("[a-c]x", "bx"));
  CHECK_FALSE(matches("[!a-c]x", "bx"));
  CHECK(matches("[^a-c]x", "dx"));
  CHECK(matches("[]a]", "]"));
  CHECK(matches("[a-]", "-"));
  CHECK(matches("[[:digit:]x]", "7"));
  CHECK_FALSE(matches("[[:digit:]]", "a"));
  CHECK(matches("\\*", "*"));
  CHECK_FALSE(matches("\\*", "a"));
  CHECK(matches("[\\]]", "]"));
  CHECK(matches("\xff*", "\xff\xfe"));
}

TEST_CASE("covers takes in what lies beneath a match") {
  auto glob = Glob::parse("secrets").value();
  CHECK(glob.covers("a/secrets/deep/file"));
  CHECK(glob.covers("secrets"));
  CHECK_FALSE(glob.covers("a/secret/file"));
  CHECK(Glob::parse("build/")->covers("build/x"));
  CHECK_FALSE(Glob::parse("build/")->covers("build"));
}

TEST_CASE("covers finds the directory above whatever the pattern") {
  CHECK(Glob::parse("a/**/b")->covers("a/x/y/b/c"));
  CHECK(Glob::parse("a/**/b/")->covers("a/b/c"));
  CHECK_FALSE(Glob::parse("a/**/b/")->covers("a/x/b"));
  CHECK(Glob::parse("a/**/b/")->covers("a/x/b", true));
  CHECK(Glob::parse("a/**")->covers("a/b/c"));
  CHECK_FALSE(Glob::parse("a/**")->covers("a"));
  CHECK(Glob::parse("/a/*")->covers("a/b/c/d"));
  CHECK_FALSE(Glob::parse("a/b/c")->covers("a/b"));
}

TEST_CASE("a path of a hundred thousand directories is looked at once") {
  std::string deep = "d";
  for (int i = 0; i < 100000; ++i) deep += "/d";
  for (const char* pattern : {"x", "x/", "a/b", "**/x", "d/**/x", "/x/**"})
    CHECK_FALSE(Glob::parse(pattern)->covers(deep));
  CHECK(Glob::parse("**/x")->covers(deep + "/x/y"));
}

TEST_CASE("how far directories have got in a pattern") {
  using Reached = std::vector<size_t>;
  auto reached = [](const char* pattern, const char* directory) {
    return Glob::parse(pattern)->reached(directory);
  };
  CHECK(reached("a/b/c", "a") == Reached{1});
  CHECK(reached("a/b/c", "a/b") == Reached{2});
  CHECK(reached("a/b/c", "a/b/c").empty());  // all of it: it is matched itself
  CHECK(reached("a/b/c", "b").empty());
  CHECK(reached("/a", "x").empty());
  CHECK(reached("c", "a").empty());  // the last component alone
  CHECK(reached("**/a/b", "x/y") == Reached{0, 1});
  CHECK(reached("**/a/b", "x/a") == Reached{0, 1, 2});
  CHECK(reached("a/**/b", "a") == Reached{1, 2});
  CHECK(reached("a/**/b", "a/x/y") == Reached{1, 2});
}

TEST_CASE("a pattern that means nothing is refused") {
  for (const char* bad : {"", "/", "a//b", "../a", "a/./b", "[a", "a/[b/c]"})
    CHECK_FALSE(Glob::parse(bad));
}

TEST_CASE("a hostile pattern costs no more than its length times the path's") {
  std::string pattern, path;
  for (int i = 0; i < 60; ++i) {
    pattern += "*a";
    path += "aaaa";
  }
  CHECK_FALSE(matches((pattern + "b").c_str(), path));
  std::string deep = "a", stars = "**";
  for (int i = 0; i < 300; ++i) {
    deep += "/a";
    stars += "/a/**";
  }
  CHECK_FALSE(matches((stars + "/b").c_str(), deep));
}
