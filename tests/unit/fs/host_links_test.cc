// SPDX-License-Identifier: Apache-2.0
// Hard links that somebody makes on the host: inotify tells the directory of
// the new name alone.
#include "catch_shim.h"
#include "tree_fixture.h"

using namespace stoplog;
using namespace stoplog::fs;
using stoplog::test::TreeFixture;
namespace stdfs = std::filesystem;

namespace {

struct Told : Observer {
  std::vector<NodeId> linked;
  void invalidate(std::span<const Invalidation> list) override {
    for (const Invalidation& what : list)
      if (what.kind == Invalidation::Kind::kNode && what.links)
        linked.push_back(what.node);
  }
  void drift(const DriftNote&) override {}
  void denied(const Denial&) override {}
};

}  // namespace

TEST_CASE("a link made on the host is found whatever was known before") {
  TreeFixture f;
  Told told;
  f.options.observer = &told;
  f.base.mkdir("d");
  f.base.mkdir("e");
  f.base.write("d/one", "1");
  f.base.write("d/two", "2");
  f.open();
  NodeId one = f.at("d/one"), two = f.at("d/two"), e = f.at("e");

  // Its event came too late or never: the second name is looked up.
  stdfs::create_hard_link(f.base / "d/one", f.base / "e/one");
  CHECK(f.at("e/one") == one);
  CHECK(f.attr("d/one").nlink == 2);
  CHECK(told.linked == std::vector<NodeId>{one});

  // An event, for a name that nobody asked for, and one for a write there.
  told.linked.clear();
  stdfs::create_hard_link(f.base / "d/two", f.base / "e/two");
  f.tree->lower_changed(e, "two");
  CHECK(told.linked == std::vector<NodeId>{two});
  told.linked.clear();
  f.base.write("e/two", "written");
  f.tree->lower_changed(e, "two");
  CHECK(told.linked == std::vector<NodeId>{two});
  CHECK(f.read(two) == "written");
}

TEST_CASE("a file that moved on the host has no second name") {
  TreeFixture f;
  Told told;
  f.options.observer = &told;
  f.base.mkdir("d");
  f.base.write("d/file", "1");
  f.open();
  f.at("d/file");
  stdfs::rename(f.base / "d/file", f.base / "here");
  CHECK(f.attr("here").nlink == 1);
  CHECK(f.at("d/file") == 0);
  CHECK(told.linked.empty());
  // A link to it belongs to the node that has the name now.
  NodeId here = f.at("here");
  stdfs::create_hard_link(f.base / "here", f.base / "d/again");
  CHECK(f.at("d/again") == here);
  CHECK(f.write("d/again", "2") == 0);
  CHECK(f.read("here") == "2");
}

TEST_CASE("going back shows what was held at every name of a real file") {
  TreeFixture f;
  f.base.mkdir("q");
  f.base.write("a", "base");
  stdfs::create_hard_link(f.base / "a", f.base / "q/twin");
  f.open();
  Position before = f.tree->mark(MarkKind::kNamed, 0, "")->position;
  CHECK(f.write("a", "held") == 0);
  Position held = f.tree->mark(MarkKind::kNamed, 0, "")->position;
  REQUIRE(f.tree->rollback(before));
  CHECK(f.read("q/twin") == "base");
  REQUIRE(f.tree->rollback(held));
  CHECK(f.read("a") == "held");
  CHECK(f.read("q/twin") == "held");
}

TEST_CASE("a late write to what a rollback took away shows at no name") {
  TreeFixture f;
  f.base.mkdir("q");
  f.base.write("a", "base");
  stdfs::create_hard_link(f.base / "a", f.base / "q/twin");
  f.open();
  Position before = f.tree->mark(MarkKind::kNamed, 0, "")->position;
  REQUIRE(
      f.tree->setattr(f.at("a"), {.set = kSetMode, .mode = 0600}, f.caller));
  NodeId open = f.at("a");
  REQUIRE(f.tree->rollback(before));
  std::string_view text = "late";
  (void)f.tree->write(open, 0, std::as_bytes(std::span(text)), {});
  CHECK(f.read("a") == "base");
  CHECK(f.read("q/twin") == "base");
  CHECK(f.attr("a").nlink == 2);
}
