// SPDX-License-Identifier: Apache-2.0
#include "cli/review_model.h"

#include "catch_shim.h"
#include "review_fixture.h"

using namespace stoplog;
using namespace stoplog::cli;
using namespace stoplog::cli::test;

namespace {

// Three hunks far apart, and two edits in the last one.
diff::Change three_hunks(const std::string& path) {
  return modified(path, lines(60), lines(60, {5, 30, 50, 53}));
}

std::string state_of(const Review& r, size_t item) {
  return std::string(word_of(r.model.items()[item].summary.standing));
}

}  // namespace

TEST_CASE("review: dangers and deletions come first") {
  Review r({modified("a", "1\n", "2\n"), deleted("b", "x\n"),
            dangerous(added("c", "y\n")), added("d", "z\n")});
  std::vector<std::string> paths;
  for (size_t i = 0; i < r.model.items().size(); i++)
    paths.push_back(r.model.change_of(i).path.str());
  CHECK(paths == std::vector<std::string>{"c", "b", "a", "d"});
  CHECK(r.path() == "c");
}

TEST_CASE("review: files that git ignores are counted and not listed") {
  diff::Change object = added("build/o", "x\n");
  object.ignored = true;
  diff::Change gone = deleted("build/p", "x\n");
  gone.ignored = true;
  diff::Change secret = dangerous(added(".env", "x\n"));
  secret.ignored = true;
  Review r({secret, modified("a", "1\n", "2\n"), object, gone});
  REQUIRE(r.model.items().size() == 3);
  CHECK(r.model.undecided() == 3);
  CHECK(r.screen().find("build/o") == std::string::npos);
  CHECK(r.screen().find("3 of 3 undecided, 1 danger not seen, 1 ignored") !=
        std::string::npos);
}

TEST_CASE("review: lines and hunks are walked and the ends hold") {
  Review r({three_hunks("f")});
  CHECK(r.model.open().hunks.size() == 3);
  CHECK(r.here() == "@@");
  r.press("jjjj");
  CHECK(r.here() == "-line 5");
  r.press("J");
  CHECK(r.here() == "@@");
  CHECK(*r.model.current_hunk() == 1);
  r.press("JJJJ");
  CHECK(*r.model.current_hunk() == 2);
  CHECK(r.model.status().find("last hunk") != std::string::npos);
  r.press("K");
  CHECK(*r.model.current_hunk() == 1);
  r.press("jjK");
  CHECK(*r.model.current_hunk() == 1);
  r.press("KKK");
  CHECK(r.model.open().cursor == 0);
  r.press("kkkk");
  CHECK(r.model.open().cursor == 0);
  r.press("G");
  CHECK(r.model.open().cursor == r.model.open().rows.size() - 1);
  r.press("jj");
  CHECK(r.model.open().cursor == r.model.open().rows.size() - 1);
}

TEST_CASE("review: the cursor is always on the screen") {
  Review r({modified("f", lines(400), lines(400, {1, 100, 200, 300, 399}))});
  for (auto [columns, rows] :
       {std::pair{100, 24}, std::pair{40, 10}, std::pair{200, 6},
        std::pair{20, 3}, std::pair{1, 1}}) {
    r.model.resize(columns, rows);
    for (char key : std::string("gjjjJJ GKk nNbJ}}}}{s")) {
      r.model.press(static_cast<Key>(key));
      const OpenFile& open = r.model.open();
      INFO(columns << "x" << rows << " after " << key);
      CHECK(open.cursor >= open.top);
      CHECK(open.cursor <
            open.top + static_cast<size_t>(r.model.geometry().text_rows));
      CHECK(open.cursor < open.rows.size());
    }
  }
}

TEST_CASE("review: approving hunks one by one approves the file") {
  Review r({three_hunks("f")});
  r.press("y");
  CHECK(state_of(r, 0) == "partial");
  CHECK(*r.model.current_hunk() == 1);
  CHECK(r.model.undecided() == 1);
  CHECK(r.model.approved() == 1);
  FileDecision d = r.store.get(r.set.changes[0], &*r.model.open().loaded->text);
  REQUIRE(d.parts.size() == 4);
  CHECK(d.parts[0] == Verdict::kApproved);
  CHECK(d.parts[1] == Verdict::kNone);
  r.press("yy");
  CHECK(state_of(r, 0) == "approved");
  CHECK(r.model.undecided() == 0);
  CHECK(r.store.get(r.set.changes[0], nullptr).whole == Verdict::kApproved);
  CHECK(r.model.status().find("everything is decided") != std::string::npos);
}

TEST_CASE("review: a split hunk is decided edit by edit") {
  Review r({three_hunks("f")});
  r.press("JJs");
  CHECK(r.model.open().hunks.size() == 4);
  CHECK(*r.model.current_hunk() == 2);
  r.press("y");
  CHECK(*r.model.current_hunk() == 3);
  FileDecision d = r.store.get(r.set.changes[0], &*r.model.open().loaded->text);
  CHECK(d.parts == std::vector<Verdict>{Verdict::kNone, Verdict::kNone,
                                        Verdict::kApproved, Verdict::kNone});
  r.press("s");
  CHECK(r.model.status().find("cannot be split") != std::string::npos);
  // Going away and back keeps the split.
  r.press("u");
  CHECK(r.model.open().hunks.size() == 4);
}

TEST_CASE("review: a hunk of which a part is decided is mixed") {
  Review r({three_hunks("f")});
  FileDecision d;
  d.parts = {Verdict::kNone, Verdict::kNone, Verdict::kApproved,
             Verdict::kRejected};
  r.store.put(r.set.changes[0], nullptr, d);
  Review fresh({three_hunks("f")});
  fresh.store = r.store;
  ReviewModel model({.set = fresh.set,
                     .decisions = fresh.store,
                     .files = fresh.files,
                     .title = "t"});
  CHECK(model.hunk_mixed(2));
  CHECK(model.hunk_verdict(2) == Verdict::kNone);
  CHECK_FALSE(model.hunk_mixed(0));
}

TEST_CASE("review: rejecting asks a reason that can be called off") {
  Review r({three_hunks("f")});
  r.press("x");
  CHECK(r.model.mode() == Mode::kReason);
  r.press("too clevver");
  for (int i = 0; i < 4; i++) r.model.press(key::kBackspace);
  r.press("er");
  r.model.press(key::kEnter);
  CHECK(r.model.mode() == Mode::kBrowse);
  CHECK(state_of(r, 0) == "partial");
  CHECK(r.store.get(r.set.changes[0], nullptr).reason == "too cleer");
  CHECK(*r.model.current_hunk() == 1);
  r.press("x");
  r.press("nonsense");
  r.model.press(key::kEscape);
  CHECK(r.model.status() == "not rejected");
  CHECK(r.model.hunk_verdict(1) == Verdict::kNone);
  r.press("d");
  r.press("also bad\n");
  CHECK(state_of(r, 0) == "rejected");
  CHECK(r.store.get(r.set.changes[0], nullptr).reason == "too cleer; also bad");
}

TEST_CASE("review: the rest of a file leaves what is decided") {
  Review r({three_hunks("f"), three_hunks("g")});
  r.press("x\n");
  r.press("a");
  FileDecision d = r.store.get(
      r.set.changes[0],
      &*std::make_shared<LoadedFile>(load_file(r.set.changes[0]))->text);
  CHECK(d.parts == std::vector<Verdict>{Verdict::kRejected, Verdict::kApproved,
                                        Verdict::kApproved,
                                        Verdict::kApproved});
  CHECK(r.path() == "g");
  r.press("[a");
  CHECK(r.model.status().find("nothing is undecided") != std::string::npos);
}

TEST_CASE("review: undo and redo go through all decisions") {
  Review r({three_hunks("f"), added("g", "x\n"), deleted("h", "y\n")});
  // h (deletion), f, g
  r.press("y");
  CHECK(state_of(r, 0) == "approved");
  r.press("yy");
  r.press("d");
  r.press("no\n");
  CHECK(r.model.undecided() == 1);
  r.press("u");
  CHECK(state_of(r, 1) == "partial");
  CHECK(r.path() == "f");
  CHECK(*r.model.current_hunk() == 2);
  r.press("uuu");
  CHECK(r.model.undecided() == 3);
  CHECK(r.path() == "h");
  r.press("u");
  CHECK(r.model.status() == "nothing to undo");
  r.press("UUUU");
  CHECK(r.model.undecided() == 1);
  CHECK(state_of(r, 1) == "partial");
  CHECK(r.store.get(r.set.changes[0], nullptr).reason == "no");
  r.press("U");
  CHECK(r.model.status() == "nothing to redo");
  // A new decision forgets what could be redone.
  r.press("u");
  r.press("gJJJy");
  r.press("U");
  CHECK(r.model.status() == "nothing to redo");
}

TEST_CASE("review: what has no parts is decided as a whole") {
  diff::Change binary = modified("bin", "a", "b");
  binary.binary = true;
  diff::Change link;
  link.path = *RelPath::parse("link");
  link.kind = diff::Kind::kAdded;
  link.after = fs::NodeState{};
  link.after->type = fs::Type::kSymlink;
  link.after->target = "/etc/passwd";
  Review r({binary, link, added("new", "1\n2\n")});
  CHECK(r.model.open().hunks.empty());
  r.press("y");
  CHECK(state_of(r, 0) == "approved");
  CHECK(r.path() == "link");
  CHECK(r.screen().find("nothing -> symlink to /etc/passwd") !=
        std::string::npos);
  r.press("x\n");
  CHECK(state_of(r, 1) == "rejected");
  CHECK(r.path() == "new");
  r.press("y");
  CHECK(state_of(r, 2) == "approved");
}

TEST_CASE("review: the mode of a changed text is a part of its own") {
  diff::Change change = three_hunks("f");
  change.mode_changed = true;
  change.after->mode = 0755;
  Review r({change});
  CHECK(r.model.open().hunks.size() == 4);
  CHECK(r.screen().find("@@ mode 100644 -> 100755") != std::string::npos);
  r.press("y");
  FileDecision d = r.store.get(r.set.changes[0], &*r.model.open().loaded->text);
  CHECK(d.mode == Verdict::kApproved);
  CHECK(d.parts == std::vector<Verdict>(4, Verdict::kNone));
  r.press("yyy");
  CHECK(state_of(r, 0) == "approved");
}

TEST_CASE("review: n finds what is undecided in any file and goes round") {
  Review r({three_hunks("a"), added("b", "x\n"), three_hunks("c")});
  r.press("]]]");
  CHECK(r.path() == "c");
  r.press("JJ");
  r.press("n");
  CHECK(r.path() == "a");
  r.press("N");
  CHECK(r.path() == "c");
  CHECK(*r.model.current_hunk() == 2);
  r.press("N");
  CHECK(*r.model.current_hunk() == 1);
  r.press("NN");
  CHECK(r.path() == "b");
}

TEST_CASE("review: a larger screen has no empty rows below a list cut off") {
  std::vector<diff::Change> changes;
  for (int i = 10; i < 50; i++)
    changes.push_back(added(std::to_string(i), "x\n"));
  Review r(std::move(changes));
  r.press("\tG\t");
  CHECK(r.model.list_top() > 0);
  r.model.resize(100, 60);
  CHECK(r.model.list_top() == 0);
  r.model.resize(1, 1);
  r.model.resize(100, 24);
  CHECK(r.model.list_top() == 40 - 22);
}

TEST_CASE("review: nothing approved is nothing to commit") {
  Review r({added("a", "x\n")});
  r.press("c");
  CHECK(r.model.mode() == Mode::kBrowse);
  CHECK(r.model.status().find("nothing is approved") != std::string::npos);
}

TEST_CASE("review: context grows and shrinks around the same hunk") {
  Review r({three_hunks("f")});
  r.press("J");
  size_t rows = r.model.open().rows.size();
  r.press("}");
  CHECK(r.model.context() == 4);
  CHECK(r.model.open().rows.size() == rows + 6);
  CHECK(*r.model.current_hunk() == 1);
  r.press("{{{{");
  CHECK(r.model.context() == 0);
  CHECK(r.model.open().hunks.size() == 4);
  CHECK(*r.model.current_hunk() == 1);
  r.press("{");
  CHECK(r.model.status().find("least") != std::string::npos);
  // Decisions belong to edits, not to hunks of one context.
  r.press("y");
  r.press("}}}");
  CHECK(r.model.hunk_verdict(1) == Verdict::kApproved);
}

TEST_CASE("review: search goes through lines then names then other files") {
  Review r({modified("alpha", lines(60), lines(60, {5, 30}, "needle")),
            modified("beta", lines(9), lines(9, {4}, "plain")),
            modified("gamma", lines(9), lines(9, {4}, "NEEDLE"))});
  r.press("/needle\n");
  CHECK(r.here() == "+needle 5");
  r.press("m");
  CHECK(r.here() == "+needle 30");
  r.press("m");
  CHECK(r.path() == "gamma");
  CHECK(r.here() == "+NEEDLE 4");
  r.press("m");
  CHECK(r.path() == "alpha");
  CHECK(r.here() == "+needle 5");
  CHECK(r.model.status() == "search went round");
  r.press("M");
  CHECK(r.path() == "gamma");
  r.press("/beta\n");
  CHECK(r.path() == "beta");
  r.press("/NEEDLE\n");
  CHECK(r.path() == "gamma");
  r.press("/absent\n");
  CHECK(r.model.status() == "no match: absent");
  CHECK(r.path() == "gamma");
  r.press("/\n");
  CHECK(r.model.status() == "no match: absent");
}

TEST_CASE("review: a long search goes in steps and a key ends it") {
  std::vector<diff::Change> changes;
  for (int i = 0; i < 200; i++)
    changes.push_back(added(fmt::format("f{:03}", i), "x\n"));
  changes.push_back(added("z", "target\n"));
  Review r(std::move(changes));
  r.press("/target\n");
  CHECK(r.model.busy());
  CHECK(r.model.status().find("searching: 32 of 201") != std::string::npos);
  int steps = 0;
  while (r.model.busy() && steps++ < 100) r.model.poll();
  CHECK(r.path() == "z");
  CHECK(steps < 10);
  CHECK(r.model.status().empty());  // found: it searches no more
  r.press("[[[[");
  r.press("/other\n");
  CHECK(r.model.busy());
  r.press("]");
  CHECK_FALSE(r.model.busy());
}

TEST_CASE("review: what changed since the last look is marked and found") {
  Looked looked;
  {
    Review first({three_hunks("a"), added("b", "x\n"), added("c", "x\n")});
    for (int i = 0; i < 3; i++) {
      first.model.shown();
      first.press("]");
    }
    looked = Looked::parse(first.model.looked().print());
    CHECK(looked.size() == 3);
  }
  diff::Change changed =
      modified("a", lines(60), lines(60, {5, 30, 40, 50, 53}));
  Review r(
      {changed, added("b", "x\n"), added("bb", "new\n"), added("c", "x\n")},
      looked);
  CHECK(r.model.items()[0].look == Look::kChanged);
  CHECK(r.model.items()[1].look == Look::kSame);
  CHECK(r.model.items()[2].look == Look::kNever);
  CHECK_FALSE(r.model.open().hunks[0].fresh);
  CHECK(r.model.open().hunks[2].fresh);
  r.press("w");
  CHECK(r.path() == "bb");
  r.press("w");
  CHECK(r.path() == "a");
  CHECK(*r.model.current_hunk() == 2);
  r.press("g");
  CHECK(r.screen().find("changed since you last looked") != std::string::npos);
}

TEST_CASE("review: a danger seen last time needs no second look") {
  Review first({dangerous(added("b", "y\n"))});
  first.model.shown();
  Looked looked = first.model.looked();
  Review same({dangerous(added("b", "y\n"))}, looked);
  CHECK(same.model.unseen_dangers() == 0);
  Review other({dangerous(added("b", "z\n"))}, looked);
  CHECK(other.model.unseen_dangers() == 1);
}

TEST_CASE("review: while a file is read nothing is decided about it") {
  class Slow : public FileSource {
   public:
    explicit Slow(const diff::ChangeSet& set) : inner(set) {}
    std::shared_ptr<const LoadedFile> get(size_t i) override {
      return ready ? inner.get(i) : nullptr;
    }
    DirectSource inner;
    bool ready = false;
  };
  diff::ChangeSet set{.changes = {dangerous(three_hunks("f"))}};
  MemoryDecisions store;
  Slow files(set);
  ReviewModel model(
      {.set = set, .decisions = store, .files = files, .title = "t"});
  CHECK(model.busy());
  model.press('y');
  model.press('a');
  model.press('x');
  model.press('s');
  model.press('J');
  CHECK(model.mode() == Mode::kBrowse);
  CHECK(model.undecided() == 1);
  model.shown();
  CHECK(model.unseen_dangers() == 1);
  files.ready = true;
  model.poll();
  CHECK_FALSE(model.busy());
  model.shown();
  CHECK(model.unseen_dangers() == 0);
  CHECK(model.open().hunks.size() == 3);
}

TEST_CASE("review: every key of the help does something without harm") {
  for (const HelpLine& line : kHelpText) {
    Review r({three_hunks("f"), added("g", "x\n"), dangerous(added("h", "y"))});
    for (char c : line.keys) {
      if (c == ' ' || line.keys == "Tab") continue;
      r.model.press(static_cast<Key>(c));
      CHECK(r.model.status() != "no such key; ? shows them");
      r.model.press(key::kEscape);
    }
  }
  Review r({three_hunks("f")});
  r.press("%");
  CHECK(r.model.status() == "no such key; ? shows them");
}

TEST_CASE("review: an empty change set says so and can be left") {
  Review r({});
  for (char c : std::string("jkJKnN[]!wi/yxadsuUcgGhlmM{}\t\n"))
    r.model.press(static_cast<Key>(c));
  CHECK(r.screen().find("nothing to review") != std::string::npos);
  r.press("q");
  CHECK(r.model.take_wish() == Wish::kLeave);
}

TEST_CASE("review: any keys in any order keep the counts right") {
  // A fixed generator: the same walk every time.
  uint32_t seed = 12345;
  auto next = [&] { return (seed = seed * 1664525 + 1013904223) >> 8; };
  Review r({three_hunks("a"), added("b", "x\n"), deleted("c", "y\n"),
            dangerous(three_hunks("d")), modified("e", "1", "2")});
  const std::string keys = "jkJKnN[]yyyxxadssuuUU{}gGhlmM/w!i?\n\tcbq \x1b";
  for (int step = 0; step < 4000; step++) {
    r.model.press(static_cast<Key>(keys[next() % keys.size()]));
    if (step % 7 == 0) r.model.shown();
    if (step % 50 == 0)
      r.model.resize(static_cast<int>(next() % 160) + 1,
                     static_cast<int>(next() % 40) + 1);
    size_t undecided = 0, approved = 0;
    for (const FileItem& item : r.model.items()) {
      undecided += item.summary.undecided;
      approved += item.summary.approves;
      CHECK(item.summary == r.store.summary(r.set.changes[item.change]));
    }
    REQUIRE(r.model.undecided() == undecided);
    REQUIRE(r.model.approved() == approved);
    r.screen();
  }
}
