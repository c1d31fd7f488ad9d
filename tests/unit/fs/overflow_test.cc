// SPDX-License-Identifier: Apache-2.0
// The event queue overflowed: what the draft holds is looked at as well, and
// every name of a file with several is asked for again.
#include <sys/stat.h>

#include "catch_shim.h"
#include "timeline_fixture.h"

using namespace stoplog;
using namespace stoplog::fs;
using namespace stoplog::test;
namespace stdfs = std::filesystem;

namespace {

struct Told : Observer {
  std::vector<Invalidation> what;
  std::vector<std::string> notes;
  void invalidate(std::span<const Invalidation> list) override {
    what.insert(what.end(), list.begin(), list.end());
  }
  void drift(const DriftNote& note) override {
    notes.push_back(note.path.str() + ": " + note.what);
  }
  void denied(const Denial&) override {}
  bool has(Invalidation::Kind kind, NodeId node, std::string_view name = "") {
    for (const Invalidation& i : what)
      if (i.kind == kind && i.node == node && i.name == name) return true;
    return false;
  }
};
using Notes = std::vector<std::string>;

}  // namespace

TEST_CASE("drift of what the draft holds is seen when events were lost") {
  TreeFixture f;
  Told told;
  f.options.observer = &told;
  f.base.mkdir("d");
  for (const char* name : {"edited", "removed", "replaced", "same", "moved"})
    f.base.write(std::string("d/") + name, "before");
  f.open();
  for (const char* name : {"d/edited", "d/removed", "d/replaced", "d/same"})
    REQUIRE(f.write(name, "mine") == 0);
  REQUIRE(f.rename("d/moved", "away") == 0);
  REQUIRE(f.create("d/new", "new") == 0);
  // The kernel knows the directory, and most of what is in it no more.
  f.forget_all();
  f.at("d");
  f.tree->lower_changed_everywhere();
  CHECK(told.notes.empty());
  f.base.write("d/edited", "edited by hand");
  stdfs::remove(f.base / "d/removed");
  f.base.write("d/other", "other");
  stdfs::rename(f.base / "d/other", f.base / "d/replaced");
  f.base.write("d/moved", "edited by hand");
  f.tree->lower_changed_everywhere();
  std::ranges::sort(told.notes);
  CHECK(told.notes == Notes{"away: modified in the real tree",
                            "d/edited: modified in the real tree",
                            "d/removed: removed in the real tree",
                            "d/replaced: replaced in the real tree"});
  f.tree->lower_changed_everywhere();
  CHECK(told.notes.size() == 4);
  CHECK(f.read("d/edited").starts_with("mine"));
}

TEST_CASE("all names of a real file are asked again when events were lost") {
  TreeFixture f;
  Told told;
  f.options.observer = &told;
  f.base.mkdir("d");
  f.base.write("d/one", "text");
  f.base.mkdir("e");
  stdfs::create_hard_link(f.base / "d/one", f.base / "e/two");
  f.open();
  NodeId d = f.at("d"), e = f.at("e");
  NodeId file = f.at("d/one");
  REQUIRE(f.at("e/two") == file);
  f.tree->lower_changed_everywhere();
  CHECK(told.has(Invalidation::Kind::kExpire, d, "one"));
  CHECK(told.has(Invalidation::Kind::kExpire, e, "two"));
  bool links = false;
  for (const Invalidation& i : told.what)
    links = links || (i.node == file && i.links);
  CHECK(links);
}

TEST_CASE("what the draft moved is not taken for removed") {
  TreeFixture f;
  Told told;
  f.options.observer = &told;
  f.base.mkdir("d");
  f.base.write("d/a", "text");
  f.open();
  NodeId d = f.at("d");
  REQUIRE(f.rename("d/a", "d/b") == 0);
  ::chmod((f.base / "d").c_str(), 0700);
  f.tree->lower_changed(d, "");
  f.tree->lower_changed(d, "b");
  CHECK(told.notes.empty());
  // But somebody's file in its way is seen.
  f.base.write("d/b", "theirs");
  f.tree->lower_changed(d, "b");
  CHECK(told.notes == Notes{"d/b: replaced in the real tree"});
}

TEST_CASE("an edit of the real file that the draft moved is drift at once") {
  TreeFixture f;
  Told told;
  f.options.observer = &told;
  f.base.write("a", "text");
  f.open();
  REQUIRE(f.rename("a", "b") == 0);
  NodeId file = f.at("b");
  f.tree->lower_changed(file, "");
  CHECK(told.notes.empty());
  f.base.write("a", "edited by hand");
  f.tree->lower_changed(file, "");  // by a watch of its own
  CHECK(told.notes == Notes{"b: modified in the real tree"});
}
