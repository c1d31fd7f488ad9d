// SPDX-License-Identifier: Apache-2.0
// A base of which only a part shows: the rest is as if it were not there.
#include <sys/stat.h>
#include <unistd.h>

#include "tree_fixture.h"

using namespace stoplog;
using namespace stoplog::test;

namespace {

// "a" leads to "a/cache", beneath which everything shows.
fs::Shown shows(std::string_view path) {
  if (path.empty() || path == "a" || path == "a/cache")
    return fs::Shown::kDirectory;
  return path.starts_with("a/cache/") ? fs::Shown::kAll : fs::Shown::kNothing;
}

struct Partly : TreeFixture {
  Partly() {
    options.base_shows = shows;
    base.mkdir("a/cache/deep");
    base.mkdir("a/secret");
    base.mkdir("other");
    base.write("a/cache/warm", "warm");
    base.write("a/cache/deep/file", "deep");
    base.write("a/secret/key", "SECRET");
    base.write("a/token", "SECRET");
    base.write("top", "SECRET");
  }
};

}  // namespace

TEST_CASE("only the part of the base that shows can be seen") {
  Partly f;
  f.open();
  CHECK(f.list("") == "a");
  CHECK(f.list("a") == "cache");
  CHECK(f.list("a/cache") == "deep warm");
  CHECK(f.read("a/cache/warm") == "warm");
  CHECK(f.read("a/cache/deep/file") == "deep");
  for (const char* path : {"a/secret", "a/secret/key", "a/token", "top"})
    CHECK(f.at(path) == 0);
}

TEST_CASE("what does not show may be made and stays the draft's own") {
  Partly f;
  f.open();
  CHECK(f.create("top", "mine") == 0);
  CHECK(f.create("a/token", "mine") == 0);
  CHECK(f.mkdir("a/secret") == 0);
  CHECK(f.list("a/secret") == "");
  CHECK(f.list("a") == "cache secret token");
  CHECK(f.write("a/cache/warm", "W") == 0);
  f.reopen();
  CHECK(f.read("top") == "mine");
  CHECK(f.read("a/token") == "mine");
  CHECK(f.list("a/secret") == "");
  CHECK(f.read("a/cache/warm") == "Warm");
  CHECK(f.base.read("top") == "SECRET");
  CHECK(f.base.read("a/cache/warm") == "warm");
}

TEST_CASE("moving and removing directories uncovers nothing") {
  Partly f;
  f.open();
  CHECK(f.rename("a", "b") == 0);
  CHECK(f.list("b") == "cache");
  CHECK(f.at("b/token") == 0);
  CHECK(f.read("b/cache/warm") == "warm");
  CHECK(f.mkdir("a") == 0);
  CHECK(f.list("a") == "");
  CHECK(f.rename("b/cache", "c") == 0);
  CHECK(f.rename("c/deep", "a/secret") == 0);
  CHECK(f.list("a/secret") == "file");
  f.reopen();
  CHECK(f.list("b") == "");
  CHECK(f.list("c") == "warm");
  CHECK(f.read("a/secret/file") == "deep");
  // Nothing that shows is left in it, so it can go.
  CHECK(f.rmdir("b") == 0);
  CHECK(f.mkdir("b") == 0);
  CHECK(f.list("b") == "");
  CHECK(f.base.read("a/token") == "SECRET");
}

TEST_CASE("on the way to what shows nothing but a directory does") {
  Partly f;
  f.base.mkdir("elsewhere");
  const std::string at = "/proc/self/fd/" + std::to_string(f.base.fd());
  REQUIRE(::rename((at + "/a").c_str(), (at + "/elsewhere/a").c_str()) == 0);
  REQUIRE(::symlink("elsewhere/a", (at + "/a").c_str()) == 0);
  f.open();
  CHECK(f.list("") == "");
  CHECK(f.at("a") == 0);
  CHECK(f.create("a", "mine") == 0);
  CHECK(f.read("a") == "mine");
}

TEST_CASE("a host's change of what does not show is told nobody") {
  struct Told : fs::Observer {
    size_t count = 0;
    void invalidate(std::span<const fs::Invalidation> what) override {
      count += what.size();
    }
    void drift(const fs::DriftNote&) override {}
    void denied(const fs::Denial&) override {}
  } told;
  Partly f;
  f.options.observer = &told;
  f.open();
  f.tree->set_observer(&told);
  const fs::NodeId dir = f.at("a");
  f.tree->lower_changed(dir, "token");
  CHECK(told.count == 0);
  f.tree->lower_changed(dir, "cache");
  CHECK(told.count > 0);
}
