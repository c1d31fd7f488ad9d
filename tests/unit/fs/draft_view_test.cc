// SPDX-License-Identifier: Apache-2.0
#include "fs/draft_view.h"

#include "catch_shim.h"
#include "tree_fixture.h"

using namespace stoplog;
using namespace stoplog::fs;
using stoplog::test::TreeFixture;
namespace stdfs = std::filesystem;

namespace {

std::string text_of(const std::optional<NodeState>& state) {
  if (!state) return "<absent>";
  if (!state->content) return "<no content>";
  std::string text(state->size, '\0');
  auto n = state->content->read(0, std::as_writable_bytes(std::span(text)));
  if (!n) return "<" + n.error().text() + ">";
  text.resize(*n);
  return text;
}

struct Viewed {
  std::unique_ptr<DraftView> view;
  std::map<std::string, RawChange> changes;
  std::string paths;
};

Viewed view_of(TreeFixture& f, Position at = kEnd) {
  Viewed v;
  auto view =
      open_view({.draft_dir = f.draft.fd(), .base = f.base.fd(), .at = at});
  if (!view) FAIL(view.error().text());
  v.view = std::move(*view);
  auto list = v.view->changes();
  if (!list) FAIL(list.error().text());
  for (RawChange& change : *list) {
    v.paths += (v.paths.empty() ? "" : " ") + change.path.str();
    v.changes[change.path.str()] = std::move(change);
  }
  return v;
}

RelPath at(std::string_view text) { return *RelPath::parse(text); }

}  // namespace

TEST_CASE("a change is of the command that runs, or of none") {
  TreeFixture f;
  f.base.write("base", "before");
  f.open();
  auto mark = [&](MarkKind kind, uint32_t command) {
    REQUIRE(f.tree->mark(kind, command, ""));
  };
  f.create("before", "x");
  mark(MarkKind::kCommandBegin, 1);
  f.create("first", "x");
  mark(MarkKind::kCommandBegin, 2);
  f.create("second", "x");
  f.create("twice", "x");
  mark(MarkKind::kCommandEnd, 2);
  f.create("first again", "x");
  mark(MarkKind::kCommandEnd, 1);
  f.create("after", "x");
  f.write("twice", "y", 0);
  auto v = view_of(f);
  CHECK(v.changes["before"].command == 0);
  CHECK(v.changes["first"].command == 1);
  CHECK(v.changes["second"].command == 2);
  CHECK(v.changes["first again"].command == 1);
  CHECK(v.changes["after"].command == 0);
  CHECK(v.changes["twice"].command == 0);
}

TEST_CASE("a view names the changed paths with before and after") {
  TreeFixture f;
  f.base.mkdir("src/gone");
  f.base.write("src/edit", "before");
  f.base.write("src/same", "same");
  f.base.write("src/gone/a", "a");
  f.open();
  f.tree->mark(MarkKind::kCommandBegin, 3, "");
  f.write("src/edit", "AFTER");
  f.create("src/new", "fresh");
  f.unlink("src/gone/a");
  f.rmdir("src/gone");
  f.read("src/same");
  auto v = view_of(f);
  CHECK(v.paths == "src/edit src/gone src/gone/a src/new");
  CHECK(text_of(v.changes["src/edit"].before) == "before");
  CHECK(text_of(v.changes["src/edit"].after) == "AFTERe");
  CHECK(v.changes["src/edit"].command == 3);
  CHECK_FALSE(v.changes["src/edit"].drift);
  CHECK_FALSE(v.changes["src/new"].before);
  CHECK(text_of(v.changes["src/new"].after) == "fresh");
  CHECK(text_of(v.changes["src/gone/a"].before) == "a");
  CHECK_FALSE(v.changes["src/gone/a"].after);
  CHECK(v.changes["src/gone"].before->type == Type::kDir);
  CHECK(text_of(*v.view->draft_state(at("src/same"))) == "same");
  CHECK_FALSE(*v.view->draft_state(at("src/gone/a")));
  CHECK(text_of(*v.view->real_state(at("src/edit"))) == "before");
  auto names = *v.view->draft_list(at("src"));
  REQUIRE(names.size() == 3);
  CHECK(names[1].name == "new");
}

TEST_CASE("a view at a mark does not see what came later") {
  TreeFixture f;
  f.base.write("file", "base");
  f.open();
  f.write("file", "one!");
  auto mark = f.tree->mark(MarkKind::kNamed, 0, "m");
  f.write("file", "two?");
  f.create("later", "x");
  auto v = view_of(f, mark->position);
  CHECK(v.paths == "file");
  CHECK(text_of(v.changes["file"].after) == "one!");
  auto now = view_of(f);
  CHECK(text_of(now.changes["file"].after) == "two?");
  CHECK(text_of(now.changes["file"].before) == "base");
}

TEST_CASE("moves are known with what they carry") {
  TreeFixture f;
  f.base.mkdir("a/deep");
  f.base.write("a/deep/kept", "kept");
  f.base.write("a/edit", "1");
  f.base.write("a/gone", "2");
  f.base.write("file", "moved");
  f.open();
  f.rename("a", "b");
  f.write("b/edit", "9");
  f.unlink("b/gone");
  f.rename("file", "b/file");
  auto v = view_of(f);
  CHECK(v.paths == "a/gone b b/edit b/file");
  CHECK(v.changes["b"].from == at("a"));
  CHECK(v.changes["b/edit"].from == at("a/edit"));
  CHECK(v.changes["b/file"].from == at("file"));
  CHECK(text_of(v.changes["b/file"].before) == "moved");
  CHECK(text_of(v.changes["b/file"].after) == "moved");
  CHECK(text_of(*v.view->draft_state(at("b/deep/kept"))) == "kept");
  CHECK_FALSE(*v.view->draft_state(at("a/deep/kept")));
}

TEST_CASE("moving there and back is no change") {
  TreeFixture f;
  f.base.mkdir("a");
  f.base.write("a/x", "x");
  f.open();
  f.rename("a/x", "y");
  f.rename("y", "a/x");
  f.rename("a", "b");
  f.rename("b", "a");
  CHECK(view_of(f).paths == "");
}

TEST_CASE("a file saved by rename is a change of that path") {
  TreeFixture f;
  f.base.write("doc", "old");
  f.base.write("other", "o");
  f.open();
  f.create("doc.tmp", "new");
  f.rename("doc.tmp", "doc");
  f.rename("other", "doc2");
  auto v = view_of(f);
  CHECK(v.paths == "doc doc2");
  CHECK(text_of(v.changes["doc"].before) == "old");
  CHECK(text_of(v.changes["doc"].after) == "new");
  CHECK_FALSE(v.changes["doc"].from);
  // What it was is kept: the base of a merge.
  f.base.write("doc", "theirs");
  v = view_of(f);
  CHECK(v.changes["doc"].drift);
  CHECK(text_of(v.changes["doc"].before) == "old");
  f.reopen();
  CHECK(text_of(view_of(f).changes["doc"].before) == "old");
}

TEST_CASE("a file deleted and made anew keeps the base that was deleted") {
  TreeFixture f;
  for (const char* name : {"made", "moved", "linked", "late", "only"})
    f.base.write(name, "old");
  f.base.mkdir("d");
  f.base.write("d/x", "old");
  f.open();
  f.rename("d", "e");
  for (const char* name : {"made", "moved", "linked", "late", "only", "e/x"})
    f.unlink(name);
  Position deleted = f.tree->mark(MarkKind::kNamed, 0, "gone")->position;
  uint64_t held = f.tree->stats().held_bytes;
  f.base.write("late", "theirs");
  f.create("made", "new");
  f.create("other", "new");
  f.rename("other", "moved");
  f.link("moved", "linked");
  f.create("late", "new");
  f.create("e/x", "new");
  // A later edit of the real file does not touch it.
  for (const char* name : {"made", "moved", "linked", "only", "d/x"})
    f.base.write(name, "theirs");
  for (int i = 0; i < 2; ++i) {
    auto v = view_of(f);
    for (const char* name : {"made", "moved", "linked"}) {
      INFO(name);
      CHECK(text_of(v.changes[name].before) == "old");
      CHECK(text_of(v.changes[name].after) == "new");
      CHECK(v.changes[name].drift);
    }
    CHECK(text_of(v.changes["e/x"].after) == "new");
    // Deleted alone, or replaced before it was made anew: nothing was taken.
    CHECK(v.changes["only"].drift);
    CHECK(v.changes["late"].drift);
    f.reopen();
  }
  CHECK(held == 0);
  // Going back and forth keeps it.
  Position now = f.tree->mark(MarkKind::kNamed, 0, "now")->position;
  REQUIRE(f.tree->rollback(deleted));
  CHECK(f.at("made") == 0);
  REQUIRE(f.tree->rollback(now));
  CHECK(text_of(view_of(f).changes["made"].before) == "old");
}

TEST_CASE("a directory deleted and made anew keeps the bases in it") {
  TreeFixture f;
  f.base.mkdir("d/e");
  f.base.write("d/e/x", "old");
  f.base.write("d/y", "old");
  f.open();
  for (const char* name : {"d/e/x", "d/y"}) CHECK(f.unlink(name) == 0);
  for (const char* name : {"d/e", "d"}) CHECK(f.rmdir(name) == 0);
  for (const char* name : {"d", "d/e"}) CHECK(f.mkdir(name) == 0);
  CHECK(f.create("d/e/x", "new") == 0);
  CHECK(f.create("d/other", "new") == 0);
  CHECK(f.rename("d/other", "d/y") == 0);
  for (const char* name : {"d/e/x", "d/y"}) f.base.write(name, "theirs");
  for (int i = 0; i < 2; ++i) {
    auto v = view_of(f);
    for (const char* name : {"d/e/x", "d/y"}) {
      INFO(name);
      CHECK(text_of(v.changes[name].before) == "old");
      CHECK(text_of(v.changes[name].after) == "new");
      CHECK(v.changes[name].drift);
    }
    f.reopen();
  }
}

TEST_CASE(
    "a base file moved over another deletes the one and changes the other") {
  TreeFixture f;
  f.base.write("a", "A");
  f.base.write("b", "B");
  f.open();
  f.rename("a", "b");
  auto v = view_of(f);
  CHECK(v.paths == "a b");
  CHECK_FALSE(v.changes["a"].after);
  CHECK(text_of(v.changes["a"].before) == "A");
  CHECK_FALSE(v.changes["b"].from);
  CHECK(text_of(v.changes["b"].before) == "B");
  CHECK(text_of(v.changes["b"].after) == "A");
}

TEST_CASE("what was created and deleted again vanishes") {
  TreeFixture f;
  f.base.mkdir("d");
  f.open();
  f.create("d/tmp", "x");
  f.mkdir("dir");
  f.unlink("d/tmp");
  f.rmdir("dir");
  CHECK(view_of(f).paths == "");
}

TEST_CASE("drift in what the draft touched is told in the view") {
  TreeFixture f;
  f.base.write("edited", "1");
  f.base.write("deleted", "2");
  f.open();
  f.write("edited", "x");
  f.unlink("deleted");
  f.create("both", "mine");
  f.base.write("edited", "theirs");
  f.base.write("deleted", "theirs too");
  f.base.write("both", "theirs");
  auto v = view_of(f);
  CHECK(v.changes["edited"].drift);
  CHECK(v.changes["deleted"].drift);
  CHECK(v.changes["both"].drift);
  CHECK(text_of(v.changes["edited"].before) == "1");
}

TEST_CASE("a file that was only touched in the real tree did not drift") {
  TreeFixture f;
  for (const char* name : {"edited", "saved", "mode"}) f.base.write(name, "1");
  f.open();
  f.write("edited", "x");
  f.write("mode", "x");
  f.create("tmp", "x");
  f.rename("tmp", "saved");
  for (const char* name : {"edited", "saved", "mode"}) {
    stdfs::last_write_time(f.base / name, {});
    CHECK_FALSE(view_of(f).changes[name].drift);
  }
  REQUIRE(chmod((f.base / "mode").c_str(), 0700) == 0);
  CHECK(view_of(f).changes["mode"].drift);
  f.base.write("saved", "2");
  CHECK(view_of(f).changes["saved"].drift);
}

TEST_CASE("links are one group and a write to a half seen one detaches") {
  TreeFixture f;
  f.base.write("a", "a");
  stdfs::create_hard_link(f.base / "a", f.base / "unseen");
  f.base.write("p", "p");
  f.open();
  f.write("a", "A");
  f.link("p", "q");
  auto v = view_of(f);
  CHECK(v.changes["a"].detaches_links);
  CHECK(v.changes["p"].after->link_group != 0);
  CHECK(v.changes["p"].after->link_group == v.changes["q"].after->link_group);
  CHECK_FALSE(v.changes["q"].detaches_links);
  CHECK(text_of(*v.view->draft_state(at("unseen"))) == "A");
}

TEST_CASE("a name seen in an untouched directory is changed by a write") {
  TreeFixture f;
  f.base.write("a", "a");
  f.base.mkdir("d");
  f.base.mkdir("d/e");
  stdfs::create_hard_link(f.base / "a", f.base / "d/e/b");
  f.open();
  CHECK(f.at("a") == f.at("d/e/b"));
  // No look at it after the write: the kernel has its name.
  f.write("a", "A");
  auto v = view_of(f);
  CHECK(v.paths == "a d/e/b");
  CHECK_FALSE(v.changes["a"].detaches_links);
  CHECK(v.changes["a"].after->link_group ==
        v.changes["d/e/b"].after->link_group);
}

TEST_CASE("a changed mode is a change with the content of the base") {
  TreeFixture f;
  f.base.write("run.sh", "echo");
  f.open();
  f.tree->setattr(f.at("run.sh"), {.set = kSetMode, .mode = 0755}, f.caller);
  auto v = view_of(f);
  CHECK(v.paths == "run.sh");
  CHECK(v.changes["run.sh"].before->mode == 0644);
  CHECK(v.changes["run.sh"].after->mode == 0755);
  CHECK(text_of(v.changes["run.sh"].after) == "echo");
}

TEST_CASE("a file is saved by rename where the quota has no room") {
  TreeFixture f;
  f.base.write("doc", std::string(900, 'x'));
  f.options.quota = {.bytes = 100, .inodes = 3, .reserve = 100};
  f.open();
  CHECK(f.create("tmp", "new") == 0);
  CHECK(f.rename("tmp", "doc") == 0);
  CHECK(f.read("doc") == "new");
  CHECK(f.tree->stats().refused_bytes == 0);
  CHECK(f.tree->stats().refused_nodes == 0);
}

TEST_CASE("what lies too deep to be told is counted with its directory") {
  TreeFixture f;
  f.base.write("edit", "before");
  f.open();
  f.write("edit", "AFTER");
  std::string name(200, 'd'), path = name, top;
  f.mkdir(path);
  for (int i = 0; i < 120; i++) {
    path += "/" + name;
    f.mkdir(path);
    if (top.empty() && path.size() >= 16384) top = path;
  }
  f.create(path + "/leaf", "x");
  auto check = [&](const std::string& moved) {
    auto v = view_of(f);
    uint64_t told = 0;
    for (const auto& [at, change] : v.changes) {
      CHECK(at.size() < 16384 + 256);
      told += change.path.is_within(*RelPath::parse(moved));
    }
    std::string there = moved + top.substr(name.size());
    REQUIRE(v.changes.contains(there));
    CHECK(v.changes[there].too_deep + told == 122);
    CHECK(v.changes.contains("edit"));
    std::map<std::string, uint64_t> deep;
    auto each = v.view->each_change([&](RawChange change) -> Status {
      if (change.too_deep != 0) deep[change.path.str()] = change.too_deep;
      return {};
    });
    CHECK(each);
    CHECK(deep ==
          std::map<std::string, uint64_t>{{there, v.changes[there].too_deep}});
  };
  check(name);
  f.base.write("other", "x");
  f.rename("other", "moved");
  check(name);  // where something moved, all are looked at together
}

TEST_CASE("what the journal knows is told without a look at the real tree") {
  TreeFixture f;
  f.base.mkdir("src/gone");
  f.base.write("src/edit", "before");
  f.base.write("src/replaced", "old");
  f.base.write("src/gone/a", "a");
  f.base.write("src/moved", "m");
  f.open();
  f.tree->mark(MarkKind::kCommandBegin, 3, "");
  f.write("src/edit", "AFTER");
  f.unlink("src/replaced");
  f.create("src/replaced", "new");
  f.create("src/new", "fresh");
  f.mkdir("made");
  f.create("made/deep", "x");
  f.unlink("src/gone/a");
  f.rmdir("src/gone");
  auto line = [](const RawChange& change) {
    return fmt::format("{} {} {} {} {} {}", change.path.str(),
                       text_of(change.before), text_of(change.after),
                       change.command, change.replaced,
                       change.drift.value_or(""));
  };
  auto known = [&](const DraftView& view) {
    std::vector<std::string> lines;
    auto told = view.each_known([&](RawChange change) -> Status {
      lines.push_back(line(change));
      return {};
    });
    REQUIRE(told);
    CHECK(*told == !lines.empty());
    return lines;
  };
  auto looked = [&](const Viewed& v) {
    std::vector<std::string> lines;
    for (const auto& [path, change] : v.changes) {
      auto alone = v.view->look_at(at(path));
      REQUIRE(alone);
      CHECK(line(*alone) == line(change));
      lines.push_back(line(change));
    }
    return lines;
  };
  auto v = view_of(f);
  CHECK(known(*v.view).size() == 7);
  CHECK(known(*v.view) == looked(v));
  CHECK_FALSE(v.view->look_at(at("src/moved")));
  // Drift is for a look to find.
  f.base.write("src/edit", "somebody else's");
  f.base.write("src/new", "somebody else's");
  std::vector<std::string> before = known(*v.view);
  v = view_of(f);
  CHECK(known(*v.view) == before);
  CHECK(looked(v) != before);
  CHECK(v.view->look_at(at("src/new"))->drift);
  // Where something moved, no change stands alone.
  REQUIRE(f.rename("src/moved", "src/elsewhere") == 0);
  v = view_of(f);
  CHECK(known(*v.view).empty());
}
