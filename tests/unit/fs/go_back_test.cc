// SPDX-License-Identifier: Apache-2.0
// Going back past commits and undos: the tree of that moment over the real tree
// of today, and nothing of it is drift.
#include <cstring>

#include "catch_shim.h"
#include "timeline_fixture.h"

using namespace stoplog;
using namespace stoplog::fs;
using namespace stoplog::test;
namespace stdfs = std::filesystem;

namespace {

struct TextContent : Content {
  explicit TextContent(std::string t) : text(std::move(t)) {}
  uint64_t size() const override { return text.size(); }
  Result<size_t> read(uint64_t offset,
                      std::span<std::byte> out) const override {
    if (offset >= text.size()) return 0;
    size_t n = std::min(out.size(), text.size() - offset);
    std::memcpy(out.data(), text.data() + offset, n);
    return n;
  }
  std::string text;
};

// A tree whose commits keep what they replace.
struct Committing : TreeFixture {
  Committing() {
    options.objects = [this](const Sha256Digest& digest)
        -> Result<std::shared_ptr<const Content>> {
      return std::make_shared<TextContent>(store.at(digest));
    };
  }
  Sha256Digest keep(const std::string& text) {
    store[sha256(text)] = text;
    return sha256(text);
  }
  BaseChange put(const std::string& path, const std::string& text) {
    std::optional<Sha256Digest> old;
    if (stdfs::exists(base / path)) old = keep(base.read(path));
    BaseChange change = commit_file(*this, path, text);
    change.preimage = old;
    return change;
  }
  BaseChange remove(const std::string& path) {
    BaseChange change{.path = *RelPath::parse(path)};
    change.before = stat_of(*this, path);
    if (S_ISREG(change.before->mode)) change.preimage = keep(base.read(path));
    stdfs::remove(base / path);
    return change;
  }
  BaseChange make_dir(const std::string& path) {
    stdfs::create_directory(base / path);
    BaseChange change{.path = *RelPath::parse(path)};
    change.now = stat_of(*this, path);
    return change;
  }
  void commit(Position reviewed, const std::vector<BaseChange>& changes) {
    auto done = tree->commit_base(reviewed, changes);
    if (!done) FAIL(done.error().text());
  }
  void back(Position to) {
    auto done = tree->rollback(to);
    if (!done) FAIL(done.error().text());
  }
  std::string drifts() {
    auto list = raw_changes(*this);
    if (!list) return list.error().text();
    std::string all;
    for (const RawChange& change : *list)
      if (change.drift) all += change.path.str() + ": " + *change.drift + "\n";
    return all;
  }
  std::map<Sha256Digest, std::string> store;
};

}  // namespace

TEST_CASE("rolling back past a commit shows what it replaced as held") {
  Committing f;
  f.base.write("edit", "original");
  f.base.write("gone", "was here");
  f.open();
  Position start = marked(f);
  f.write("edit", "Original");
  f.create("made", "made");
  f.unlink("gone");
  Position reviewed = marked(f);
  f.commit(reviewed, {f.put("edit", "Original"), f.put("made", "made"),
                      f.remove("gone")});
  CHECK(changed_paths(f) == "");
  f.back(start);
  CHECK(f.read("edit") == "original");
  CHECK(f.read("gone") == "was here");
  CHECK(f.at("made") == 0);
  CHECK(changed_paths(f) == "edit gone made");
  f.reopen();
  CHECK(f.read("edit") == "original");
  CHECK(f.list("") == "edit gone");
}

TEST_CASE("a commit beneath a directory moved at the older mark is no drift") {
  Committing f;
  f.base.mkdir("sub");
  f.base.write("sub/x", "one");
  f.base.write("sub/y", "y");
  f.open();
  Position start = marked(f);
  f.rename("sub", "moved");
  f.write("moved/x", "two");
  Position moved = marked(f);
  f.back(start);
  f.write("sub/x", "three");
  f.commit(marked(f), {f.put("sub/x", "three")});
  f.back(moved);
  CHECK(f.read("moved/x") == "two");
  CHECK(f.list("moved") == "x y");
  CHECK(f.drifts() == "");
  f.reopen();
  CHECK(f.drifts() == "");
  CHECK(f.read("moved/x") == "two");
  // Another kind of thing at its place is to go.
  f.back(start);
  f.unlink("sub/x");
  f.mkdir("sub/x");
  Position reviewed = marked(f);
  BaseChange gone = f.remove("sub/x");
  BaseChange dir = f.make_dir("sub/x");
  dir.before = gone.before;
  dir.preimage = gone.preimage;
  f.commit(reviewed, {dir});
  f.back(moved);
  CHECK(f.read("moved/x") == "two");
  CHECK(f.drifts() == "");
}

TEST_CASE("a directory that an undo made again is to go with what is in it") {
  Committing f;
  f.base.mkdir("deep/one");
  f.base.write("deep/one/f", "f");
  f.open();
  f.unlink("deep/one/f");
  f.rmdir("deep/one");
  Position reviewed = marked(f);
  f.commit(reviewed, {f.remove("deep/one/f"), f.remove("deep/one")});
  CHECK(changed_paths(f) == "");
  Position gone = marked(f);
  f.commit(reviewed, {f.make_dir("deep/one"), f.put("deep/one/f", "f")});
  CHECK(f.read("deep/one/f") == "f");
  f.back(gone);
  CHECK(f.at("deep/one") == 0);
  CHECK(changed_paths(f) == "deep/one deep/one/f");
  CHECK(f.drifts() == "");
}

TEST_CASE("the first of two commits says what a removed directory held") {
  Committing f;
  f.base.mkdir("d");
  f.base.write("d/f", "one");
  f.open();
  Position start = marked(f);
  f.write("d/f", "two");
  f.commit(marked(f), {f.put("d/f", "two")});
  f.unlink("d/f");
  f.rmdir("d");
  f.commit(marked(f), {f.remove("d/f"), f.remove("d")});
  CHECK(f.at("d") == 0);
  f.back(start);
  CHECK(f.read("d/f") == "one");
  CHECK(changed_paths(f) == "d d/f");
  f.reopen();
  CHECK(f.read("d/f") == "one");
}

TEST_CASE("a symlink and a directory that an undo took away come back") {
  Committing f;
  f.base.write("a", "a");
  f.open();
  REQUIRE(f.tree->symlink(kRootId, "link", "a", f.caller));
  f.mkdir("dir");
  Position reviewed = marked(f);
  stdfs::create_symlink("a", f.base / "link");
  BaseChange link{.path = *RelPath::parse("link")};
  link.now = stat_of(f, "link");
  f.commit(reviewed, {f.make_dir("dir"), link});
  CHECK(changed_paths(f) == "");
  Position committed = marked(f);
  BaseChange gone = f.remove("link");
  gone.before_target = "a";
  f.commit(reviewed, {gone, f.remove("dir")});
  CHECK(f.list("") == "a");
  f.back(committed);
  CHECK(f.list("") == "a dir link");
  CHECK(*f.tree->readlink(f.at("link")) == "a");
  CHECK(changed_paths(f) == "dir link");
  f.reopen();
  CHECK(*f.tree->readlink(f.at("link")) == "a");
}

TEST_CASE("what was moved over another stays gone when both are undone") {
  Committing f;
  f.base.write("from", "f");
  f.base.write("to", "t");
  f.open();
  f.write("from", "F");
  f.write("to", "T");
  Position reviewed = marked(f);
  f.commit(reviewed, {f.put("from", "F"), f.put("to", "T")});
  f.write("from", "moved");
  f.rename("from", "to");
  f.commit(reviewed, {f.put("from", "f"), f.put("to", "t")});
  CHECK(f.list("") == "to");
  CHECK(f.read("to") == "moved");
  CHECK(changed_paths(f) == "from to");
  CHECK(f.drifts() == "");
}

TEST_CASE("a committed file that was moved outlives the undo of its commit") {
  Committing f;
  f.base.write("from", "old");
  f.base.write("other", "x");
  f.open();
  f.write("from", "new");
  Position reviewed = marked(f);
  REQUIRE(f.tree->settle());
  f.commit(reviewed, {f.put("from", "new")});
  f.rename("from", "to");
  f.rename("other", "else");
  REQUIRE(f.tree->settle());
  f.commit(reviewed, {f.put("from", "old")});
  CHECK(f.read("to") == "new");
  CHECK(changed_paths(f) == "else from to");
  CHECK(f.drifts() == "");
}

TEST_CASE("what was moved over a new file stays moved when that is undone") {
  Committing f;
  f.base.write("from", "f");
  f.open();
  bool own = GENERATE(false, true);
  if (own) {
    f.write("from", "F");
    Position first = marked(f);
    f.commit(first, {f.put("from", "F")});
  }
  f.write("to", "T");
  Position reviewed = marked(f);
  f.commit(reviewed, {f.put("to", "T")});
  f.rename("from", "to");
  REQUIRE(f.tree->settle());
  f.commit(reviewed, {f.remove("to")});
  CHECK(f.list("") == "to");
  CHECK(f.read("to") == (own ? "F" : "f"));
  auto changes = raw_changes(f, kEnd);
  REQUIRE(changes);
  REQUIRE(changes->size() == 1);
  CHECK((*changes)[0].path == *RelPath::parse("to"));
  CHECK((*changes)[0].from == RelPath::parse("from").value());
  CHECK(f.drifts() == "");
}

TEST_CASE("of two names one replaced and one removed stay one held file") {
  Committing f;
  f.base.write("b", "old");
  stdfs::create_hard_link(f.base / "b", f.base / "linked");
  f.open();
  f.write("b", "new");
  CHECK(f.read("linked") == "new");
  Position start = marked(f);
  f.unlink("b");
  Position reviewed = marked(f);
  f.commit(reviewed, {f.put("linked", "new"), f.remove("b")});
  f.back(start);
  CHECK(f.attr("b").nlink == 2);
  CHECK(f.read("b") == "new");
  CHECK(f.read("linked") == "new");
  CHECK(f.drifts() == "");
  // And the commit of the one leaves the other comparable.
  f.commit(marked(f), {f.put("b", "new")});
  f.write("linked", "newer");
  CHECK(f.drifts() == "");
  CHECK(changed_paths(f) == "linked");
}

TEST_CASE("what a committed link replaced shows at its own name alone") {
  Committing f;
  f.base.write("linked", "one");
  f.base.write("f", "two");
  f.base.write("saved", "three");
  f.open();
  f.create("tmp", "three saved");
  f.rename("tmp", "saved");
  Position start = marked(f);
  for (const char* name : {"f", "saved"}) {
    f.unlink(name);
    f.link("linked", name);
  }
  Position reviewed = marked(f);
  auto link = [&](const char* name, const char* old) {
    BaseChange change{.path = *RelPath::parse(name)};
    change.before = stat_of(f, name);
    change.preimage = f.keep(old);
    stdfs::remove(f.base / name);
    stdfs::create_hard_link(f.base / "linked", f.base / name);
    change.now = stat_of(f, name);
    return change;
  };
  std::vector<BaseChange> changes{link("f", "two"), link("saved", "three")};
  for (BaseChange& change : changes) change.now = stat_of(f, change.path.str());
  f.commit(reviewed, changes);
  CHECK(f.read("f") == "one");
  f.back(start);
  auto holds = [&] {
    CHECK(f.read("f") == "two");
    CHECK(f.read("saved") == "three saved");
    CHECK(f.read("linked") == "one");
    CHECK(f.attr("f").nlink == 1);
    CHECK(f.drifts() == "");
    CHECK(changed_paths(f) == "f saved");
  };
  holds();
  f.reopen();
  holds();
}

TEST_CASE("a mark from before a commit shows the tree of that moment") {
  Committing f;
  f.base.mkdir("dir");
  f.base.write("dir/in", "in");
  f.base.write("edit", "one");
  f.base.write("gone", "g");
  f.base.write("from", "f");
  f.open();
  Position start = marked(f);
  f.write("edit", "two");
  f.unlink("gone");
  f.rename("from", "to");
  f.rename("dir", "moved");
  f.create("made", "m");
  Position reviewed = marked(f);
  auto move = [&](const char* from, const char* to) {
    BaseChange change{.path = *RelPath::parse(to)};
    change.from = *RelPath::parse(from);
    change.before = stat_of(f, from);
    stdfs::rename(f.base / from, f.base / to);
    change.now = stat_of(f, to);
    return change;
  };
  f.commit(reviewed,
           {f.put("edit", "two"), f.remove("gone"), move("from", "to"),
            move("dir", "moved"), f.put("made", "m")});
  CHECK(changed_paths(f) == "");
  auto view = open_view({.draft_dir = f.draft.fd(),
                         .base = f.base.fd(),
                         .at = start,
                         .objects = f.options.objects});
  if (!view) FAIL(view.error().text());
  auto text = [&](const char* path) -> std::string {
    auto state = (*view)->draft_state(*RelPath::parse(path));
    if (!state) return state.error().text();
    if (!*state) return "-";
    std::string all((*state)->size, '\0');
    auto n = (*state)->content->read(0, std::as_writable_bytes(std::span(all)));
    return n ? all : n.error().text();
  };
  CHECK(text("edit") == "one");
  CHECK(text("gone") == "g");
  CHECK(text("from") == "f");
  CHECK(text("dir/in") == "in");
  CHECK(text("to") == "-");
  CHECK(text("moved/in") == "-");
  CHECK(text("made") == "-");
  std::string names;
  auto top = (*view)->draft_list(RelPath());
  REQUIRE(top);
  for (const DirEntry& entry : *top) names += entry.name + " ";
  CHECK(names == "dir edit from gone ");
  // Without the objects only what was replaced cannot be read.
  view =
      open_view({.draft_dir = f.draft.fd(), .base = f.base.fd(), .at = start});
  REQUIRE(view);
  CHECK(text("from") == "f");
  CHECK(text("edit").find("replaced by a commit") != std::string::npos);
}

TEST_CASE(
    "a committed symlink that was moved outlives the undo of its commit") {
  Committing f;
  f.base.write("a", "a");
  f.open();
  REQUIRE(f.tree->symlink(kRootId, "link", "a", f.caller));
  Position reviewed = marked(f);
  stdfs::create_symlink("a", f.base / "link");
  BaseChange link{.path = *RelPath::parse("link")};
  link.now = stat_of(f, "link");
  f.commit(reviewed, {link});
  f.rename("link", "moved");
  BaseChange gone = f.remove("link");
  gone.before_target = "a";
  f.commit(reviewed, {gone});
  CHECK(f.list("") == "a moved");
  CHECK(*f.tree->readlink(f.at("moved")) == "a");
  CHECK(changed_paths(f) == "moved");
  f.reopen();
  CHECK(*f.tree->readlink(f.at("moved")) == "a");
}
