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
