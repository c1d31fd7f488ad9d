// SPDX-License-Identifier: Apache-2.0
#include "diff/change_set.h"
#include "catch_shim.h"
#include "diff/patch.h"
#include "memory_view.h"

using namespace stoplog;
using namespace stoplog::diff;

namespace {

ChangeSet build(const fs::View& view, DiffOptions options = {}) {
  auto set = build_change_set(view, options);
  if (!set) INFO(set.error().text());
  REQUIRE(set);
  return std::move(*set);
}

std::vector<std::string> told(const ChangeSet& set) {
  std::vector<std::string> out;
  for (const Change& change : set.changes)
    out.push_back(std::string(name_of(change.kind)) + " " +
                  (change.from ? change.from->str() + " -> " : "") +
                  change.path.str());
  return out;
}

using Told = std::vector<std::string>;

// A base that the real tree no longer has and the draft did not keep.
class LostContent : public fs::Content {
 public:
  uint64_t size() const override { return 12; }
  Result<size_t> read(uint64_t, std::span<std::byte>) const override {
    return std::unexpected(
        Error(Code::kDrift, "a was replaced in the real tree", EIO));
  }
};

}  // namespace

TEST_CASE("touched and rewritten with the same bytes is no change") {
  MemoryView view;
  view.base["a"] = file("hello\n");
  view.change("a", file("hello\n"));
  view.base["b"] = file("x");
  auto touched = file("x");
  touched.mtime.tv_sec = 12345;
  view.change("b", touched);
  CHECK(build(view).empty());
}

TEST_CASE("a base that is lost is drift and hides no other change") {
  MemoryView view;
  view.base["a"] = file("twelve bytes");
  view.base["a"].content = std::make_shared<LostContent>();
  view.change("a", file("one\ntwo\n"));
  view.change("b", file("other\n"));
  ChangeSet set = build(view);
  REQUIRE(told(set) == Told{"modified a", "added b"});
  REQUIRE(set.changes[0].drift);
  CHECK(set.changes[0].drift->starts_with("a was replaced in the real tree"));
  CHECK(set.changes[0].lines_added == 2);
  CHECK(set.digest);
}

// The draft wrote a byte of a large file, and the real one was edited before
// the rest was copied.
TEST_CASE("a file that is lost on both sides is listed as drifted") {
  class HalfLost : public LostContent {
   public:
    Result<size_t> read(uint64_t offset,
                        std::span<std::byte> out) const override {
      if (offset != 0 || out.size() != 1) return LostContent::read(offset, out);
      out[0] = std::byte{'X'};
      return size_t{1};
    }
  };
  MemoryView view;
  view.base["a"] = file("twelve bytes");
  view.base["a"].content = std::make_shared<LostContent>();
  auto after = view.base["a"];
  SECTION("wholly") {}
  SECTION("but for its first byte") {
    after.content = std::make_shared<HalfLost>();
  }
  view.change("a", after);
  view.raw.back().drift = "modified in the real tree";
  ChangeSet set = build(view);
  REQUIRE(told(set) == Told{"modified a"});
  CHECK(set.changes[0].drift);
}

TEST_CASE("created and deleted again is no change") {
  MemoryView view;
  view.change("gone", std::nullopt);
  CHECK(build(view).empty());
}

TEST_CASE("renamed and back is no change") {
  MemoryView view;
  view.base["a"] = file("hello\n");
  view.change("a", file("hello\n"), "a");
  CHECK(build(view).empty());
}

TEST_CASE("same size and other bytes is a modification with line counts") {
  MemoryView view;
  view.base["a"] = file("one\ntwo\nthree\n");
  view.change("a", file("one\nTWO\nthree\n"));
  ChangeSet set = build(view);
  CHECK(told(set) == Told{"modified a"});
  CHECK(set.changes[0].lines_added == 1);
  CHECK(set.changes[0].lines_deleted == 1);
  CHECK(set.changes[0].old_sha256 != set.changes[0].new_sha256);
}

TEST_CASE("modes and extended attributes and owners are changes of mode") {
  MemoryView view;
  view.base["m"] = file("x");
  view.change("m", file("x", 0755));
  view.base["o"] = file("x");
  auto owned = file("x");
  owned.uid = 7;
  view.change("o", owned);
  view.base["x"] = file("x");
  auto attributed = file("x");
  attributed.xattrs["user.k"] = "v";
  view.change("x", attributed);
  CHECK(told(build(view)) == Told{"mode m", "mode o", "mode x"});
}

TEST_CASE("a moved directory is one row that opens into its files") {
  MemoryView view;
  view.base["old"] = dir();
  for (int i = 0; i < 50; i++) {
    std::string name = "/f" + std::to_string(i);
    view.base["old" + name] = file(std::to_string(i));
    view.draft["new" + name] = view.base["old" + name];
  }
  view.change("new", dir(), "old");
  // Touched without effect, and really changed, beneath it.
  view.change("new/f1", file("1"), "old/f1");
  view.change("new/f2", file("other"), "old/f2");
  ChangeSet set = build(view);
  CHECK(told(set) == Told{"renamed old -> new", "renamed old/f2 -> new/f2"});
  int opened = 0;
  REQUIRE(for_each_moved(
      view, set, set.changes[0], [&](const Moved& moved) -> Status {
        opened++;
        CHECK(moved.path.str().substr(4) == moved.from.str().substr(4));
        CHECK(moved.path.str() != "new/f2");
        return {};
      }));
  CHECK(opened == 49);
}

TEST_CASE("a directory moved inside a moved one tells its files once") {
  MemoryView view;
  for (auto name : {"a", "a/x"}) view.base[name] = dir();
  view.base["a/x/f"] = file("f");
  view.base["a/g"] = file("g");
  view.draft["b/y/f"] = view.base["a/x/f"];
  view.draft["b/g"] = view.base["a/g"];
  view.change("b", dir(), "a");
  view.change("b/y", dir(), "a/x");
  ChangeSet set = build(view);
  CHECK(told(set) == Told{"renamed a -> b", "renamed a/x -> b/y"});
  std::string patch;
  REQUIRE(write_patch(view, set, {}, [&](auto s) { patch += s; }));
  CHECK(patch.find("rename from a/g\nrename to b/g") != std::string::npos);
  CHECK(patch.find("rename from a/x/f\nrename to b/y/f") != std::string::npos);
}

TEST_CASE(
    "a file moved over another one modifies it and deletes the old name") {
  MemoryView view;
  view.base["a"] = file("from a\n");
  view.base["b"] = file("from b\n");
  view.change("b", file("from a\n"), "a");
  CHECK(told(build(view)) == Told{"deleted a", "modified b"});
}

TEST_CASE("two files that swapped names are two renames") {
  MemoryView view;
  view.base["a"] = file("from a\n");
  view.base["b"] = file("from b\n");
  view.change("b", file("from a\n"), "a");
  view.change("a", file("from b\n"), "b");
  CHECK(told(build(view)) == Told{"renamed b -> a", "renamed a -> b"});
}

TEST_CASE("a chain of moves that ends on a file of the base is no rename") {
  MemoryView view;
  view.base["a"] = file("from a\n");
  view.base["b"] = file("from b\n");
  view.base["c"] = file("from c\n");
  view.change("c", file("from b\n"), "b");
  view.change("b", file("from a\n"), "a");
  CHECK(told(build(view)) == Told{"deleted a", "modified b", "modified c"});
}

TEST_CASE("a new file at the old name of a moved one is an addition") {
  MemoryView view;
  view.base["a"] = file("old\n");
  view.change("b", file("old\n"), "a");
  fs::RawChange fresh;
  fresh.path = path("a");
  fresh.after = file("new\n");
  view.raw.push_back(fresh);
  CHECK(told(build(view)) == Told{"added a", "renamed a -> b"});
}

TEST_CASE("a directory moved onto a deleted one tells what was deleted") {
  MemoryView view;
  view.base["a"] = dir();
  view.base["a/f"] = file("a's f\n");
  view.base["b"] = dir();
  view.base["b/f"] = file("b's f\n");
  view.base["b/g"] = file("b's g\n");
  view.change("b", dir(), "a");
  view.draft["b/f"] = view.base["a/f"];
  ChangeSet set = build(view);
  CHECK(told(set) == Told{"deleted a/f", "modified b/f", "deleted b/g"});
  REQUIRE(set.directories.size() == 2);
  CHECK(set.directories[1].path == path("b"));
  CHECK(set.directories[1].merges == path("a"));
}

TEST_CASE("directories moved over others in turn tell each name once") {
  MemoryView view;  // c is gone, b is c now, and a is b
  for (std::string name : {"a", "b", "c"}) {
    view.base[name] = dir();
    view.base[name + "/" + name] = file("of " + name + "\n");
    view.base[name + "/sub"] = dir();
    view.base[name + "/sub/f"] = file(name + "'s f\n");
  }
  view.change("b", dir(), "a");
  view.draft["b/a"] = view.base["a/a"];
  view.draft["b/sub"] = dir();
  view.draft["b/sub/f"] = view.base["a/sub/f"];
  view.change("c", dir(), "b");
  view.draft["c/b"] = view.base["b/b"];
  view.draft["c/sub"] = dir();
  view.draft["c/sub/f"] = view.base["b/sub/f"];
  ChangeSet set = build(view);
  CHECK(told(set) == Told{"deleted a/sub/f", "renamed a/a -> b/a",
                          "modified b/sub/f", "renamed b/b -> c/b",
                          "deleted c/c", "modified c/sub/f"});
  std::vector<std::string> tied;
  for (const Change& change : set.directories)
    if (change.merges) tied.push_back(change.path.str());
  CHECK(tied == std::vector<std::string>{"b", "b/sub", "c", "c/sub"});
}

TEST_CASE("a view that names the replaced file itself gives the same") {
  MemoryView view;
  view.base["a"] = dir();
  view.base["a/f"] = file("a's f\n");
  view.base["b"] = dir();
  view.base["b/f"] = file("b's f\n");
  view.change("b", dir(), "a");
  view.change("b/f", file("a's f\n"));
  view.draft["b/f"] = file("a's f\n");
  CHECK(told(build(view)) == Told{"deleted a/f", "modified b/f"});
}

TEST_CASE("a change of the top directory itself is shown as a dot") {
  MemoryView view;
  view.base[""] = dir();
  view.change("", node(fs::Type::kDir, 0700));
  ChangeSet set = build(view);
  REQUIRE(set.changes.size() == 1);
  CHECK(set.changes[0].shown_path() == ".");
}

TEST_CASE("a directory moved onto a deleted file tells both") {
  MemoryView view;
  view.base["a"] = dir();
  view.base["a/f"] = file("f\n");
  view.base["b"] = file("b was a file\n");
  view.change("b", dir(), "a");
  view.draft["b/f"] = view.base["a/f"];
  ChangeSet set = build(view);
  CHECK(told(set) == Told{"type b", "renamed a/f -> b/f"});
  REQUIRE(set.directories.size() == 1);
  CHECK(set.directories[0].path == path("a"));
}

TEST_CASE("a copy whose source was deleted is a rename") {
  std::string text(100, 'x');
  MemoryView view;
  view.base["old"] = dir();
  view.base["old/a"] = file(text);
  view.change("old", std::nullopt);
  view.change("old/a", std::nullopt);
  view.change("new", dir());
  view.change("new/a", file(text, 0755));
  for (bool digest : {true, false}) {
    DiffOptions options;
    options.digest = digest;
    ChangeSet set = build(view, options);
    CHECK(told(set) == Told{"renamed old/a -> new/a"});
    CHECK(set.changes[0].mode_changed);
    CHECK(set.directories.size() == 2);
  }
}

TEST_CASE("copies that could be one or another are not guessed") {
  std::string text(100, 'x');
  MemoryView view;
  for (auto name : {"a", "b"}) {
    view.base[name] = file(text);
    view.change(name, std::nullopt);
  }
  view.change("c", file(text));
  CHECK(told(build(view)) == Told{"deleted a", "deleted b", "added c"});
  view.change("d/b", file(text));
  CHECK(told(build(view)) == Told{"deleted a", "added c", "renamed b -> d/b"});
}

TEST_CASE("directories that come with their files are no rows") {
  MemoryView view;
  view.change("d", dir());
  view.change("d/e", dir());
  view.change("d/e/f", file("x"));
  view.change("empty", dir());
  ChangeSet set = build(view);
  CHECK(told(set) == Told{"added d/e/f", "added empty"});
  REQUIRE(set.directories.size() == 2);
  CHECK(set.directories[1].path == path("d/e"));
}

TEST_CASE("a file that became a directory and back are changes of type") {
  MemoryView view;
  view.base["a"] = file("x");
  view.change("a", dir());
  view.change("a/in", file("y"));
  view.base["s"] = dir();
  view.base["s/in"] = file("z");
  view.change("s", file("w"));
  view.change("s/in", std::nullopt);
  CHECK(told(build(view)) ==
        Told{"type a", "added a/in", "type s", "deleted s/in"});
}

TEST_CASE("names of one inode are told as links of the first") {
  MemoryView view;
  auto linked = file("x");
  linked.link_group = 5;
  view.change("a", linked);
  view.change("b", linked);
  ChangeSet set = build(view);
  CHECK_FALSE(set.changes[0].link_to);
  CHECK(set.changes[1].link_to == path("a"));
}

TEST_CASE("a new name of an unchanged file is told as its link") {
  MemoryView view;
  auto linked = file("x");
  linked.link_group = 5;
  view.base["b"] = file("x");
  view.base["z"] = file("x");
  view.change("a", linked);
  view.change("b", linked);  // another file before, that looked the same
  view.change("z", linked);  // as it was
  view.raw[1].replaced = true;
  ChangeSet set = build(view);
  CHECK(told(set) == Told{"added a"});
  CHECK(set.changes[0].link_to == path("z"));
  REQUIRE(set.unchanged.size() == 1);
  CHECK(set.unchanged[0].path == path("z"));
}

TEST_CASE("the digest changes with every byte that matters and no other") {
  auto digest = [](auto edit) {
    MemoryView view;
    view.base["a"] = file("old\n");
    view.change("a", file("new\n"));
    view.change("dir", dir());
    view.change("dir/b", file("b\n"));
    edit(view);
    return *build(view).digest;
  };
  auto plain = digest([](MemoryView&) {});
  CHECK(plain == digest([](MemoryView& v) { v.raw[0].command = 9; }));
  CHECK(plain == digest([](MemoryView& v) { v.raw[0].drift = "moved"; }));
  CHECK(plain ==
        digest([](MemoryView& v) { v.raw[0].after->mtime.tv_sec = 1; }));
  CHECK(plain != digest([](MemoryView& v) { v.raw[0].after = file("nEw\n"); }));
  CHECK(plain !=
        digest([](MemoryView& v) { v.raw[0].before = file("oLd\n"); }));
  CHECK(plain != digest([](MemoryView& v) { v.raw[0].after->mode = 0600; }));
  CHECK(plain != digest([](MemoryView& v) { v.raw[0].after->uid = 1; }));
  CHECK(plain != digest([](MemoryView& v) { v.raw[1].after->mode = 0700; }));
  CHECK(plain != digest([](MemoryView& v) { v.raw[2].path = path("dir/c"); }));
  CHECK(plain != digest([](MemoryView& v) { v.raw.pop_back(); }));
  CHECK(plain !=
        digest([](MemoryView& v) { v.raw[0].after->xattrs["user.a"] = ""; }));
}

TEST_CASE("dangers come first and then deletions") {
  MemoryView view;
  view.change("a", file("x"));
  view.base["b"] = symlink("a");
  view.change("b", std::nullopt);
  view.change("z/.envrc", file("x"));
  ChangeSet set = build(view);
  Told order;
  for (size_t i : display_order(set))
    order.push_back(set.changes[i].path.str());
  CHECK(order == Told{"z/.envrc", "b", "a"});
}

TEST_CASE("a change that cannot be read fails and names the path") {
  class Broken : public fs::Content {
   public:
    explicit Broken(Error error) : error_(std::move(error)) {}
    uint64_t size() const override { return 3; }
    Result<size_t> read(uint64_t, std::span<std::byte>) const override {
      return std::unexpected(error_);
    }

   private:
    Error error_;
  };
  MemoryView view;
  view.change("a", file("fine"));
  view.change("b", file(std::make_shared<Broken>(Error(EIO))));
  auto set = build_change_set(view, {});
  REQUIRE_FALSE(set);
  CHECK(set.error().err() == EIO);
  CHECK(set.error().text().find("'b'") != std::string::npos);
  // What was the real tree's and is there no more is drift of its path.
  MemoryView lost;
  lost.change("b",
              file(std::make_shared<Broken>(Error(Code::kDrift, "it moved"))));
  ChangeSet drifted = build(lost);
  REQUIRE(drifted.changes.size() == 1);
  CHECK(drifted.changes[0].drift == "it moved");
}
