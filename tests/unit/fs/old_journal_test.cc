// SPDX-License-Identifier: Apache-2.0
// Drafts of an older version, kept in tests/fixtures: today's program shows of
// them what that one showed, at every mark, and goes on from there.
#include <cstdlib>
#include <map>

#include "catch_shim.h"
#include "fs/draft_view.h"
#include "fs/gc.h"
#include "temp_dir.h"
#include "timeline_fixture.h"

using namespace stoplog;
using namespace stoplog::fs;
using namespace stoplog::test;

namespace {

// Of each draft and position, as tests/fixtures/journal-0.cc wrote it.
using Expected = std::map<std::string, std::map<Position, std::string>>;

Expected read_expected(const TempDir& top) {
  Expected all;
  std::istringstream in(top.read("expected"));
  std::string* text = nullptr;
  for (std::string line; std::getline(in, line);) {
    if (!line.starts_with("= ")) {
      *text += line + "\n";
      continue;
    }
    std::istringstream words(line.substr(2));
    std::string name;
    Position at = 0;
    words >> name >> at;
    text = &all[name][at];
  }
  return all;
}

void show(const DraftView& view, const RelPath& dir, std::string& out) {
  auto listed = view.draft_list(dir);
  REQUIRE(listed);
  for (const DirEntry& entry : *listed) {
    RelPath path = *RelPath::parse(
        dir.is_root() ? entry.name : dir.str() + "/" + entry.name);
    auto state = view.draft_state(path);
    REQUIRE(state);
    REQUIRE(*state);
    std::string text = (*state)->target;
    if ((*state)->content) {
      text.resize((*state)->size);
      if (auto n = (*state)->content->read(
              0, std::as_writable_bytes(std::span(text)));
          !n)
        text = "<" + n.error().text() + ">";
    }
    if (text.size() > 20)
      text = text.substr(0, 10) + ".." + std::to_string(text.size());
    out += path.str() + " " + std::to_string(int((*state)->type)) + " " +
           std::to_string((*state)->mode) + " " + text + "\n";
    if ((*state)->type == Type::kDir) show(view, path, out);
  }
}

class Old {
 public:
  Old() {
    const std::string command =
        "tar -xzf '" FIXTURES "/journal-0.tar.gz' -C " + top.path().string();
    REQUIRE(std::system(command.c_str()) == 0);
    expected = read_expected(top);
    REQUIRE(expected.size() == 3);
  }
  Fd dir(const std::string& name) const {
    return *sys::openat(top.fd(), name, O_RDONLY | O_DIRECTORY);
  }
  std::string show_at(const std::string& name, Position at) const {
    Fd fd = dir(name);
    auto view = open_view({.draft_dir = fd.get(), .base = base.fd(), .at = at});
    if (!view) return "<" + view.error().text() + ">";
    CHECK_FALSE((*view)->damaged());
    std::string text;
    show(**view, RelPath(), text);
    return text;
  }
  void check(const std::string& name) const {
    for (const auto& [at, want] : expected.at(name)) {
      INFO(name << " at " << at);
      CHECK(show_at(name, at) == want);
    }
  }

  TempDir top, base;
  Expected expected;
};

}  // namespace

TEST_CASE("drafts from before a generation told of the others show the same") {
  Old old;
  for (const char* name : {"parent", "fork", "bare"}) {
    INFO(name);
    old.check(name);
    // Opened for writing, with a checkpoint, which tells of all before it.
    const std::string end = old.expected[name][kEnd];
    {
      Fd fd = old.dir(name);
      auto tree = Tree::open(
          {.draft_dir = fd.get(), .base = old.base.fd(), .background = false});
      REQUIRE(tree);
      CHECK_FALSE((*tree)->read_only());
      CHECK((*tree)->recovery_notes().empty());
      CHECK(old.show_at(name, kEnd) == end);
      REQUIRE((*tree)->checkpoint());
      REQUIRE((*tree)->settle());
    }
    old.check(name);
    // And gone back and forth, and without what no mark needs.
    Fd fd = old.dir(name);
    auto tree = Tree::open(
        {.draft_dir = fd.get(), .base = old.base.fd(), .background = false});
    REQUIRE(tree);
    for (const auto& [at, want] : old.expected[name]) {
      if (at == kEnd) continue;
      INFO("rollback to " << at);
      REQUIRE((*tree)->rollback(at));
      CHECK(old.show_at(name, kEnd) == want);
    }
    REQUIRE((*tree)->gc({}));
    old.expected[name].erase(kEnd);
    old.check(name);
  }
}
