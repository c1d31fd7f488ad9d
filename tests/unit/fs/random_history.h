// SPDX-License-Identifier: Apache-2.0
// A draft with a random history: writes, names, marks, rollbacks, checkpoints,
// commits to the real tree. At each mark the whole tree is written down; what a
// view at that mark shows later must be the same.
#pragma once

#include <cstring>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "fs/draft_view.h"
#include "tree_fixture.h"

namespace stoplog::test {

// Every path of a view with what stands there, as text.
inline std::string dump_dir(const fs::View& view, const RelPath& dir) {
  auto list = view.draft_list(dir);
  if (!list) return dir.str() + ": <" + list.error().text() + ">\n";
  std::string out;
  for (const fs::DirEntry& entry : *list) {
    RelPath path = dir / entry.name;
    auto state = view.draft_state(path);
    if (!state || !*state) {
      out += path.str() + ": <gone>\n";
      continue;
    }
    out += fmt::format("{} {} {:04o} {}", path.str(),
                       static_cast<int>((*state)->type), (*state)->mode,
                       (*state)->target);
    if ((*state)->content) {
      std::string text((*state)->content->size(), '\0');
      auto n =
          (*state)->content->read(0, std::as_writable_bytes(std::span(text)));
      out += n ? " " + xxh3(std::as_bytes(std::span(text))).hex() + " " +
                     std::to_string(text.size())
               : " <" + n.error().text() + ">";
    }
    out += "\n";
    if ((*state)->type == fs::Type::kDir) out += dump_dir(view, path);
  }
  return out;
}

class RandomHistory {
 public:
  // `commits`: the real tree changes, too.
  explicit RandomHistory(unsigned seed, bool commits = true)
      : random(seed), commits_(commits) {
    f.options.take_whole = 20000;  // some are pinned
    f.options.objects = [this](const Sha256Digest& digest)
        -> Result<std::shared_ptr<const fs::Content>> {
      auto it = store.find(digest);
      if (it == store.end()) return fail_errno(ENOENT, "no such object");
      return std::make_shared<Text>(it->second);
    };
    f.base.mkdir("d/e");
    for (const char* name : {"a", "b", "d/c", "d/e/x", "d/e/y"})
      f.base.write(name, noise(below(3) == 0 ? 60000 : 3000));
    f.open();
  }

  void run(int steps) {
    for (int i = 0; i < steps; ++i) step();
    mark();
  }
  void mark() {
    auto made = f.tree->mark(fs::MarkKind::kCommandEnd, ++command_, "");
    if (!made) FAIL(made.error().text());
    marks[made->position] = dump(made->position);
    log += fmt::format("mark {}\n", made->position);
  }
  std::string dump(fs::Position at) { return dump(f.draft.fd(), at); }
  std::string dump(int draft, fs::Position at) {
    return dump_over(draft, f.base.fd(), at);
  }
  std::string dump_over(int draft, int base, fs::Position at) {
    auto view = fs::open_view({.draft_dir = draft,
                               .base = base,
                               .at = at,
                               .objects = f.options.objects});
    if (!view) return "<" + view.error().text() + ">";
    return dump_dir(**view, RelPath());
  }

  struct Text : fs::Content {
    explicit Text(std::string t) : text(std::move(t)) {}
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

  TreeFixture f;
  std::mt19937 random;
  std::map<Sha256Digest, std::string> store;
  std::map<fs::Position, std::string> marks;  // what each showed

  uint64_t below(uint64_t n) { return random() % n; }

 private:
  const bool commits_;
  uint32_t command_ = 0;
  std::string noise(size_t size) {
    std::string text(size, '\0');
    for (size_t i = 0; i + 4 <= size; i += 4) {
      uint32_t word = static_cast<uint32_t>(random());
      std::memcpy(text.data() + i, &word, 4);
    }
    return text;
  }
  std::string path() {
    static const char* const kPaths[] = {"a",     "b",     "d/c", "d/e/x",
                                         "d/e/y", "new",   "d/n", "m",
                                         "d/m",   "d/e/n", "t",   "u"};
    return kPaths[below(std::size(kPaths))];
  }
  std::string log;  // what was done, for a failure
  void note(std::string_view what, const std::string& names, int error) {
    log += fmt::format("{} {}: {}\n", what, names, error);
  }
  void step() {
    const std::string from = path(), to = path();
    switch (below(14)) {
      case 0:
      case 1:
        note("create", from, f.create(from, noise(below(9000))));
        break;
      case 2:
      case 3:
      case 4: {
        std::string name = path();
        if (f.at(name) != 0)
          note("write", name,
               f.write(name, noise(1 + below(20000)), below(3) * 4096));
        break;
      }
      case 5: {
        std::string name = path();
        if (f.at(name) != 0) f.truncate(name, below(30000));
        break;
      }
      case 6:
        note("unlink", from, f.unlink(from));
        break;
      case 7:
        note("rename", from + " " + to, f.rename(from, to));
        break;
      case 8:
      case 9:
      case 10:
        mark();
        break;
      case 11:
        if (below(3) == 0) rollback();
        break;
      case 12:
        if (below(2) == 0) REQUIRE(f.tree->settle());
        if (below(4) == 0) REQUIRE(f.tree->checkpoint());
        if (below(4) == 0) f.reopen();
        break;
      case 13:
        if (below(3) == 0 && commits_) commit();
        break;
    }
  }
  void rollback() {
    if (marks.empty()) return;
    auto it = marks.begin();
    std::advance(it, static_cast<long>(below(marks.size())));
    auto done = f.tree->rollback(it->first);
    if (!done) FAIL(log + done.error().text());
    log += fmt::format("rollback {} -> {}\n", it->first, done->position);
    marks[done->position] = dump(done->position);
    INFO(log);
    CHECK(marks[done->position] == it->second);
  }
  // One regular file, as a commit would do it.
  void commit() {
    REQUIRE(f.tree->settle());
    mark();
    fs::Position reviewed = marks.rbegin()->first;
    auto view = fs::open_view({.draft_dir = f.draft.fd(),
                               .base = f.base.fd(),
                               .at = reviewed,
                               .objects = f.options.objects});
    REQUIRE(view);
    auto changes = (*view)->changes();
    REQUIRE(changes);
    for (const char* name : {"a", "b", "d/c"}) {
      RelPath at = *RelPath::parse(name);
      // What was moved away from there and not written to stands on it.
      bool stands = false;
      for (const fs::RawChange& change : *changes)
        stands = stands || change.from == at;
      if (stands) continue;
      auto state = (*view)->draft_state(at);
      REQUIRE(state);
      auto before = sys::statat(f.base.fd(), name);
      if (!*state || (*state)->type != fs::Type::kFile || !before) continue;
      std::string text((*state)->size, '\0');
      REQUIRE(
          (*state)->content->read(0, std::as_writable_bytes(std::span(text))));
      std::string old = f.base.read(name);
      if (old == text) continue;
      fs::BaseChange change;
      change.path = at;
      change.before = *before;
      store[sha256(old)] = old;
      change.preimage = sha256(old);
      f.base.write("stage", text);
      std::filesystem::permissions(
          f.base / "stage",
          static_cast<std::filesystem::perms>((*state)->mode));
      std::filesystem::rename(f.base / "stage", f.base / name);
      change.now = *sys::statat(f.base.fd(), name);
      auto done = f.tree->commit_base(reviewed, {{change}});
      if (!done) FAIL(done.error().text());
      log += fmt::format("commit {} at {} reviewed {}\n", name, done->position,
                         reviewed);
      return;
    }
  }
};

}  // namespace stoplog::test
