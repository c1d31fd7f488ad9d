// SPDX-License-Identifier: Apache-2.0
// A draft with all that a journal can have (marks, rollbacks, a checkpoint, a
// commit) and a fork of it, while the parent goes on writing to the generation
// that they share. Copies of either can be damaged and looked at.
#pragma once

#include <fstream>

#include "fs/layout.h"
#include "fs/replay.h"
#include "random_history.h"
#include "timeline_fixture.h"

namespace stoplog::test {

inline std::string slurp(const std::filesystem::path& path) {
  std::ostringstream all;
  all << std::ifstream(path, std::ios::binary).rdbuf();
  return all.str();
}

inline void spill(const std::filesystem::path& path, std::string_view bytes) {
  std::ofstream(path, std::ios::binary | std::ios::trunc)
      .write(bytes.data(), std::streamsize(bytes.size()));
}

class Story {
 public:
  Story() {
    parent.options.take_whole = 20000;
    parent.options.objects = objects();
    parent.base.mkdir("d/e");
    parent.base.write("low", "lower");
    parent.base.write("d/e/deep", "deep");
    parent.base.write("big", std::string(60000, 'b'));
    parent.open();
    begin();
    own_history();
    parent.tree.reset();
    parent.open();
    parents_later();
    parent.tree.reset();
    fork.reset();
    for (int draft : {parent.draft.fd(), fork_dir.fd()}) {
      auto marks = replay(draft)->state.marks();
      REQUIRE(marks.size() > 5);
      for (const Mark& mark : marks)
        expected[draft][mark.position] = show(draft, mark.position);
      expected[draft][kEnd] = show(draft, kEnd);
      for (const auto& [at, text] : expected[draft]) {
        INFO(at << ": " << text);
        REQUIRE(text.find('<') == std::string::npos);
      }
    }
  }

  ObjectSource objects() {
    return [this](const Sha256Digest& digest)
               -> Result<std::shared_ptr<const Content>> {
      auto it = store.find(digest);
      if (it == store.end()) return fail_errno(ENOENT, "no such object");
      return std::make_shared<RandomHistory::Text>(it->second);
    };
  }
  Result<std::unique_ptr<DraftView>> view(int draft, Position at) {
    return open_view({.draft_dir = draft,
                      .base = parent.base.fd(),
                      .at = at,
                      .objects = objects()});
  }
  // Every path with what is there; a line with '<' has what is wrong.
  std::string show(int draft, Position at) {
    auto opened = view(draft, at);
    if (!opened) return "<" + opened.error().text() + ">";
    return dump_dir(**opened, RelPath());
  }

  TreeFixture parent;
  TempDir fork_dir;
  std::map<Sha256Digest, std::string> store;
  // By draft directory and mark: what it shows.
  std::map<int, std::map<Position, std::string>> expected;

 private:
  // As the daemon's pool does it after each mark: what was replaced before it
  // was sealed has no check.
  static Position sealed(TreeFixture& f) {
    Position mark = marked(f);
    REQUIRE(f.tree->settle());
    return mark;
  }
  void commit(TreeFixture& f, const std::string& path,
              const std::string& text) {
    f.write(path, text);
    Position reviewed = sealed(f);
    std::string old = f.base.read(path);
    store[sha256(old)] = old;
    BaseChange change = commit_file(f, path, text);
    change.preimage = sha256(old);
    REQUIRE(f.tree->commit_base(reviewed, {{change}}));
  }
  // Three generations of the parent: the first, one that goes on from it, a
  // whole state.
  void begin() {
    TreeFixture& f = parent;
    f.create("file", "one");
    f.write("low", "LOWER");
    Position one = sealed(f);
    f.write("file", std::string(9000, 'f'));
    f.rename("d/e", "moved");
    f.write("big", "BIG", 5000);
    sealed(f);
    REQUIRE(f.tree->rollback(one));
    f.create("second", "s");
    sealed(f);
    commit(f, "low", "committed");
    f.unlink("second");
    sealed(f);
    REQUIRE(f.tree->checkpoint());
    f.create("third", std::string(5000, 't'));
    forked_at = sealed(f);
    REQUIRE(f.tree->settle());
    REQUIRE(f.tree->fork_into(fork_dir.fd(), forked_at));
  }
  // Of the fork: one that goes on from the shared one, one that goes back past
  // the commit, one that goes on from the first of these.
  void own_history() {
    auto opened = Tree::open({.draft_dir = fork_dir.fd(),
                              .base = parent.base.fd(),
                              .background = false,
                              .objects = objects()});
    REQUIRE(opened);
    fork = std::move(*opened);
    make("forks", std::string(6000, 'k'));
    Position mine = mark_fork();
    make("more", "m");
    mark_fork();
    REQUIRE(fork->settle());
    REQUIRE(fork->rollback(fork->marks().front().position));
    make("past", "p");
    mark_fork();
    REQUIRE(fork->rollback(mine));
    make("last", "l");
    mark_fork();
    make("unmarked", "u");
    REQUIRE(fork->settle());
  }
  // Behind where the fork was made, in the file that it has as well.
  void parents_later() {
    TreeFixture& f = parent;
    for (int i = 0; i < 12; ++i) {
      f.create("parents" + std::to_string(i), "not the fork's");
      sealed(f);
    }
    commit(f, "d/e/deep", "the parent's commit");
    f.write("third", "not the fork's");
    sealed(f);
    REQUIRE(f.tree->settle());
    REQUIRE(f.tree->rollback(forked_at));
    f.create("at last", "a");
    sealed(f);
    REQUIRE(f.tree->settle());
  }
  void make(const std::string& name, const std::string& text) {
    auto made = fork->mknod(kRootId, name, S_IFREG | 0644, 0, parent.caller);
    REQUIRE(made);
    REQUIRE(fork->write(made->id, 0, std::as_bytes(std::span(text)), {}));
  }
  Position mark_fork() {
    Position mark = fork->mark(MarkKind::kNamed, 0, "")->position;
    REQUIRE(fork->settle());
    return mark;
  }

  std::unique_ptr<Tree> fork;
  Position forked_at = 0;
};

}  // namespace stoplog::test
