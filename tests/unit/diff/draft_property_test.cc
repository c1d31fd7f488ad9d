// SPDX-License-Identifier: Apache-2.0
// Random operations on a draft's tree, mirrored on a plain directory: the
// patch of the draft, applied to the base by git, gives the mirror. Moves of
// files and whole directories, over one another and back, links, types.
#include <random>

#include "catch_shim.h"
#include "diff/between.h"
#include "diff/patch.h"
#include "fs/draft_view.h"
#include "fs/tree_fixture.h"
#include "two_trees.h"

using namespace stoplog;
using namespace stoplog::diff;
namespace stdfs = std::filesystem;

namespace {

// Each operation on both sides; they must agree on whether it works.
class Mirror {
 public:
  Mirror(test::TreeFixture& tree, std::string root)
      : tree_(tree), root_(std::move(root)) {}

  void create(const std::string& at, const std::string& text) {
    if (exists(at) || !parent_is_dir(at)) return;
    REQUIRE(tree_.create(at, text) == 0);
    TwoTrees::write(full(at), text);
    log_ += "create " + at + "\n";
  }
  void overwrite(const std::string& at, const std::string& text) {
    if (!stdfs::is_regular_file(status(at))) return;
    REQUIRE(tree_.truncate(at, 0) == 0);
    if (!text.empty()) REQUIRE(tree_.write(at, text) == 0);
    TwoTrees::write(full(at), text);
    log_ += "write " + at + "\n";
  }
  void make_executable(const std::string& at) {
    if (!stdfs::is_regular_file(status(at))) return;
    REQUIRE(tree_.tree->setattr(
        tree_.at(at), {.set = fs::kSetMode, .mode = 0755}, tree_.caller));
    stdfs::permissions(full(at), stdfs::perms(0755));
    log_ += "chmod " + at + "\n";
  }
  void mkdir(const std::string& at) {
    if (exists(at) || !parent_is_dir(at)) return;
    REQUIRE(tree_.mkdir(at) == 0);
    stdfs::create_directory(full(at));
    log_ += "mkdir " + at + "\n";
  }
  void symlink(const std::string& at) {
    if (exists(at) || !parent_is_dir(at)) return;
    auto [dir, name] = tree_.place(at);
    REQUIRE(tree_.tree->symlink(dir, name, "some/target", tree_.caller));
    stdfs::create_symlink("some/target", full(at));
    log_ += "symlink " + at + "\n";
  }
  void link(const std::string& from, const std::string& to) {
    if (!stdfs::is_regular_file(status(from)) || exists(to) ||
        !parent_is_dir(to))
      return;
    REQUIRE(tree_.link(from, to) == 0);
    stdfs::create_hard_link(full(from), full(to));
    log_ += "link " + from + " " + to + "\n";
  }
  void remove(const std::string& at) {
    if (!exists(at)) return;
    if (stdfs::is_directory(status(at))) {
      std::vector<std::string> names;
      for (const auto& entry : stdfs::directory_iterator(full(at)))
        names.push_back(entry.path().filename());
      std::sort(names.begin(), names.end());
      for (const std::string& name : names) remove(at + "/" + name);
      REQUIRE(tree_.rmdir(at) == 0);
    } else {
      REQUIRE(tree_.unlink(at) == 0);
    }
    stdfs::remove(full(at));
    log_ += "remove " + at + "\n";
  }
  void rename(const std::string& from, const std::string& to) {
    if (!exists(from) || !parent_is_dir(to) || to == from ||
        to.starts_with(from + "/") || from.starts_with(to + "/"))
      return;
    std::error_code error;
    stdfs::rename(full(from), full(to), error);
    int ours = tree_.rename(from, to);
    INFO(log_ << "rename " << from << " " << to);
    REQUIRE((ours == 0) == !error);
    log_ += "rename " + from + " " + to + "\n";
  }
  std::vector<std::string> all() const {
    std::vector<std::string> out;
    for (const auto& entry : stdfs::recursive_directory_iterator(root_))
      out.push_back(entry.path().string().substr(root_.size() + 1));
    std::sort(out.begin(), out.end());
    return out;
  }
  const std::string& log() const { return log_; }

 private:
  std::string full(const std::string& at) const { return root_ + "/" + at; }
  stdfs::file_status status(const std::string& at) const {
    return stdfs::symlink_status(full(at));
  }
  bool exists(const std::string& at) const { return stdfs::exists(status(at)); }
  bool parent_is_dir(const std::string& at) const {
    size_t slash = at.rfind('/');
    return slash == std::string::npos ||
           stdfs::is_directory(status(at.substr(0, slash)));
  }

  test::TreeFixture& tree_;
  std::string root_;
  std::string log_;
};

std::string any_text(std::mt19937& random) {
  std::string out;
  for (size_t i = random() % 12; i > 0; i--)
    out += "line " + std::to_string(random() % 6) + "\n";
  if (random() % 6 == 0) out += std::string("\0bin", 4);
  return out;
}

std::string any_path(std::mt19937& random) {
  std::string out;
  for (size_t depth = random() % 3; depth > 0; depth--)
    out += std::string(1, static_cast<char>('A' + random() % 3)) + "/";
  return out + std::string(1, static_cast<char>('a' + random() % 4));
}

std::string any_place(std::mt19937& random) {
  std::string out = any_path(random);
  // A directory's name, sometimes.
  if (random() % 3 == 0) out.back() = static_cast<char>('A' + random() % 3);
  return out;
}

void operate(std::mt19937& random, Mirror& mirror) {
  auto there = mirror.all();
  std::string any =
      there.empty() ? any_place(random) : there[random() % there.size()];
  switch (random() % 10) {
    case 0:
      return mirror.create(any_path(random), any_text(random));
    case 1:
    case 2:
      return mirror.overwrite(any, any_text(random));
    case 3:
      return mirror.remove(any);
    case 4:
      return mirror.mkdir(any_place(random));
    case 5:
      return random() % 2 == 0 ? mirror.symlink(any_path(random))
                               : mirror.make_executable(any);
    case 6:
      return mirror.link(any, any_path(random));
    default:
      return mirror.rename(any, any_place(random));
  }
}

// A base, a draft over it, and the mirror of what the agent sees.
class Scene {
 public:
  explicit Scene(unsigned seed) : random(seed), mirror(tree, trees.draft()) {
    for (size_t i = random() % 15; i > 0; i--) {
      std::string at = tree.base.path().string() + "/" + any_path(random);
      std::error_code ignored;
      stdfs::create_directories(stdfs::path(at).parent_path(), ignored);
      TwoTrees::write(at, any_text(random) + std::to_string(i) + "\n");
    }
    copy(tree.base.path(), trees.base());
    copy(tree.base.path(), trees.draft());
    tree.open();
  }
  static void copy(const std::string& from, const std::string& to) {
    REQUIRE(TwoTrees::run("mkdir -p '" + to + "' && cp -a '" + from + "/.' '" +
                          to + "'") == 0);
  }
  void work() {
    for (size_t i = random() % 12 + 1; i > 0; i--) operate(random, mirror);
  }
  std::shared_ptr<const fs::View> now() {
    auto mark = tree.tree->mark(fs::MarkKind::kBarrier, 0, "");
    REQUIRE(mark);
    auto view = fs::open_view({.draft_dir = tree.draft.fd(),
                               .base = tree.base.fd(),
                               .at = mark->position,
                               .objects = {}});
    if (!view) FAIL(view.error().text());
    return std::move(*view);
  }

  std::mt19937 random;
  TwoTrees trees;
  test::TreeFixture tree;
  Mirror mirror;
};

// The patch of the view, applied to the tree at `start`, gives `end`.
void check_patch(const fs::View& view, const std::string& start,
                 const std::string& end) {
  auto set = build_change_set(view, {});
  if (!set) FAIL(set.error().text());
  std::string patch, told;
  REQUIRE(write_patch(view, *set, {}, [&](auto s) { patch += s; }));
  for (const Change& change : set->changes) {
    told += std::string(name_of(change.kind)) + " " +
            (change.from ? change.from->str() + " -> " : "") +
            change.path.str() + "\n";
    CHECK_FALSE(change.drift);
  }
  INFO(told);
  TwoTrees::write(start + ".patch", patch);
  auto expected = TwoTrees::listing(end);
  bool differs = TwoTrees::listing(start) != expected;
  CHECK(patch.empty() == !differs);
  // Git neither makes nor removes empty directories, and stumbles over them.
  TwoTrees::run("find '" + start + "' -mindepth 1 -type d -empty -delete");
  if (differs)
    REQUIRE(TwoTrees::run("cd '" + start +
                          "' && git apply --whitespace=nowarn --binary '" +
                          start + ".patch'") == 0);
  CHECK(TwoTrees::listing(start) == expected);
}

}  // namespace

TEST_CASE("the patch of a draft gives what the agent saw") {
  for (unsigned seed = 1; seed <= 50; seed++) {
    Scene scene(seed);
    scene.work();
    INFO("seed " << seed << "\n" << scene.mirror.log());
    check_patch(*scene.now(), scene.trees.base(), scene.trees.draft());
  }
}

TEST_CASE("the patch between two moments leads from one to the other") {
  for (unsigned seed = 1001; seed <= 1040; seed++) {
    Scene scene(seed);
    scene.work();
    auto first = scene.now();
    std::string then = scene.trees.top() + "/then";
    std::string before = scene.trees.top() + "/before";
    Scene::copy(scene.trees.draft(), then);
    Scene::copy(scene.trees.draft(), before);
    size_t so_far = scene.mirror.log().size();
    scene.work();
    INFO("seed " << seed << "\n"
                 << scene.mirror.log().substr(0, so_far) << "--- mark\n"
                 << scene.mirror.log().substr(so_far));
    auto second = scene.now();
    check_patch(*view_between(first, second), then, scene.trees.draft());
    // And back.
    std::string back = scene.trees.top() + "/back";
    Scene::copy(scene.trees.draft(), back);
    check_patch(*view_between(second, first), back, before);
  }
}
