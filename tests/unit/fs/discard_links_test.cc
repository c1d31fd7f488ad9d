// SPDX-License-Identifier: Apache-2.0
// A discard of one name of a real file that has several: the real file shows
// there, and the other names keep what is held.
#include "catch_shim.h"
#include "timeline_fixture.h"

using namespace stoplog;
using namespace stoplog::fs;
using namespace stoplog::test;
namespace stdfs = std::filesystem;

namespace {

// As `stoplog discard` does it.
Status discard(TreeFixture& f, std::initializer_list<const char*> paths) {
  TRY(f.tree->settle());
  Position reviewed = marked(f);
  std::vector<BaseChange> changes;
  for (const char* path : paths) {
    BaseChange change;
    change.path = *RelPath::parse(path);
    if (auto now = sys::statat(f.base.fd(), path)) change.now = *now;
    change.before = change.now;
    changes.push_back(change);
  }
  TRY(f.tree->commit_base(reviewed, changes));
  return {};
}

// In all three: the tree that goes on, one whose kernel forgot all names, and
// one that was opened anew.
void each_time(TreeFixture& f, const std::function<void()>& check) {
  check();
  f.forget_all();
  check();
  f.reopen();
  check();
  CHECK(f.tree->recovery_notes().empty());
}

}  // namespace

TEST_CASE("a discarded name of a linked file is not held again at next sight") {
  TreeFixture f;
  f.base.write("big", "real");
  stdfs::create_hard_link(f.base / "big", f.base / "linked");
  f.open();
  f.at("big");
  f.at("linked");
  CHECK(f.write("big", "held") == 0);
  CHECK(changed_paths(f) == "big linked");
  REQUIRE(discard(f, {"big"}));
  each_time(f, [&] {
    CHECK(f.read("big") == "real");
    CHECK(f.read("linked") == "held");
    CHECK(f.attr("linked").nlink == 1);
    CHECK(f.attr("linked").ino != f.attr("big").ino);
    CHECK(changed_paths(f) == "linked");
  });
  // What stays can still be merged with: its base is known.
  auto list = raw_changes(f);
  REQUIRE(list);
  REQUIRE(list->front().before);
  CHECK(list->front().before->size == 4);
  f.base.write("big", "edited");
  CHECK(f.read("linked") == "held");
  REQUIRE(discard(f, {"linked"}));
  each_time(f, [&] {
    CHECK(changed_paths(f).empty());
    CHECK(f.read("linked") == "edited");
    CHECK(f.attr("linked").ino == f.attr("big").ino);
  });
}

TEST_CASE("a discard of one name keeps a new mode and its content at another") {
  for (size_t size : {size_t{5}, size_t{3} << 20}) {
    TreeFixture f;
    const std::string text(size, 'r');
    f.base.write("a", text);
    stdfs::create_hard_link(f.base / "a", f.base / "b");
    f.open();
    f.at("a");
    f.at("b");
    REQUIRE(
        f.tree->setattr(f.at("a"), {.set = kSetMode, .mode = 0700}, f.caller));
    REQUIRE(discard(f, {"a"}));
    each_time(f, [&] {
      CHECK((f.attr("a").mode & 07777) == 0644);
      CHECK((f.attr("b").mode & 07777) == 0700);
      CHECK(f.attr("b").size == size);
      CHECK(f.read("b") == text.substr(0, 1u << 20));
    });
  }
}

TEST_CASE("all names of a linked file but one can be discarded at once") {
  TreeFixture f;
  f.base.write("a", "real");
  for (const char* name : {"b", "c"})
    stdfs::create_hard_link(f.base / "a", f.base / name);
  f.open();
  for (const char* name : {"a", "b", "c"}) f.at(name);
  CHECK(f.write("b", "held") == 0);
  REQUIRE(discard(f, {"a", "b"}));
  each_time(f, [&] {
    CHECK(f.read("a") == "real");
    CHECK(f.read("b") == "real");
    CHECK(f.read("c") == "held");
    CHECK(f.attr("c").nlink == 1);
    CHECK(changed_paths(f) == "c");
  });
  REQUIRE(discard(f, {"c"}));
  each_time(f, [&] { CHECK(changed_paths(f).empty()); });
}

TEST_CASE("a discarded move of one name leaves the other one held") {
  TreeFixture f;
  f.base.write("a", "real");
  stdfs::create_hard_link(f.base / "a", f.base / "b");
  f.open();
  f.at("a");
  f.at("b");
  CHECK(f.write("a", "held") == 0);
  CHECK(f.rename("a", "moved") == 0);
  REQUIRE(discard(f, {"moved", "a"}));
  each_time(f, [&] {
    CHECK(f.at("moved") == 0);
    CHECK(f.read("a") == "real");
    CHECK(f.read("b") == "held");
    CHECK(f.attr("b").nlink == 1);
    CHECK(changed_paths(f) == "b");
  });
}
