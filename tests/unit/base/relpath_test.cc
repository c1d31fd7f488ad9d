// SPDX-License-Identifier: Apache-2.0
#include "base/relpath.h"

#include "catch_shim.h"

using stoplog::RelPath;

TEST_CASE("RelPath takes any bytes but no way out") {
  CHECK(RelPath::parse("a/b"));
  CHECK(RelPath::parse("a\xff\n/b c"));
  for (const char* bad : {"/a", "a/", "a//b", ".", "..", "a/../b", "a/."})
    CHECK_FALSE(RelPath::parse(bad));
  CHECK_FALSE(RelPath::parse(std::string_view("a\0b", 3)));
  CHECK_FALSE(RelPath::parse(std::string(256, 'x')));
  CHECK(RelPath::parse(std::string(255, 'x')));
  CHECK(RelPath::parse("")->is_root());
}

TEST_CASE("RelPath orders a directory before its content and its siblings") {
  auto p = [](const char* s) { return RelPath::parse(s).value(); };
  CHECK(p("a") < p("a/b"));
  CHECK(p("a/b") < p("a.c"));
  CHECK(p("a/b").is_within(p("a")));
  CHECK_FALSE(p("ab").is_within(p("a")));
  CHECK(p("a/b").parent() == p("a"));
  CHECK(p("a/b/c").name() == "c");
  CHECK((p("a") / "z").str() == "a/z");
  CHECK(p("a/b/c").components().size() == 3);
}
