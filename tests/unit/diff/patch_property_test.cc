// SPDX-License-Identifier: Apache-2.0
// Random trees and random edits: `git apply` of our patch on the base gives
// the draft, and `git diff --no-index` names the same paths.
#include <random>
#include <set>

#include "catch_shim.h"
#include "diff/patch.h"
#include "diff/render.h"
#include "two_trees.h"

using namespace stoplog;
using namespace stoplog::diff;
namespace stdfs = std::filesystem;

namespace {

class Random {
 public:
  explicit Random(unsigned seed) : engine_(seed) {}
  size_t below(size_t n) { return engine_() % n; }
  bool one_in(size_t n) { return below(n) == 0; }

  std::string name() {
    static const std::vector<std::string> kNames = {
        "a",         "b.c",     "with space", "tab\there",
        "quo\"te",   "back\\s", "\xff\xfe",   "\xc3\xa9t\xc3\xa9",
        "new\nline", "-rf",     "c.txt",      "d.py",
        "$(id)",     "a;b",     "e"};
    return kNames[below(kNames.size())];
  }

  std::string line() {
    static const std::vector<std::string> kLines = {"int main() {",
                                                    "  return 0;",
                                                    "}",
                                                    "",
                                                    "\tx = 1",
                                                    "crlf\r",
                                                    "-minus",
                                                    "+plus",
                                                    "@@ -1 +1 @@",
                                                    "--- a/x",
                                                    "\\ No newline",
                                                    "lone\rreturn",
                                                    "caf\xc3\xa9",
                                                    "\xff\xff",
                                                    "same",
                                                    "same",
                                                    "same"};
    return kLines[below(kLines.size())];
  }

  std::string text() {
    switch (below(8)) {
      case 0:
        return "";
      case 1: {  // binary
        std::string out;
        for (size_t i = below(3000) + 1; i > 0; i--)
          out += static_cast<char>(below(256));
        return out + '\0';
      }
      default: {
        std::string out;
        for (size_t i = below(60) + 1; i > 0; i--) out += line() + "\n";
        if (one_in(4)) out.pop_back();
        return out;
      }
    }
  }

  std::string edited(const std::string& old) {
    std::vector<std::string> lines;
    std::istringstream in(old);
    for (std::string l; std::getline(in, l);) lines.push_back(l);
    for (size_t i = below(4) + 1; i > 0; i--) {
      size_t at = lines.empty() ? 0 : below(lines.size());
      if (lines.empty() || one_in(3)) {
        lines.insert(lines.begin() + static_cast<long>(at), line());
      } else if (one_in(2)) {
        lines.erase(lines.begin() + static_cast<long>(at));
      } else {
        lines[at] = line();
      }
    }
    std::string out;
    for (auto& l : lines) out += l + "\n";
    if (one_in(5) && !out.empty()) out.pop_back();
    return out;
  }

 private:
  std::mt19937 engine_;
};

std::vector<std::string> files_of(const std::string& root) {
  std::vector<std::string> out;
  for (const auto& e : stdfs::recursive_directory_iterator(root))
    if (e.is_symlink() || !e.is_directory())
      out.push_back(e.path().string().substr(root.size() + 1));
  std::sort(out.begin(), out.end());
  return out;
}

std::string random_path(Random& random) {
  std::string path;
  for (size_t depth = random.below(3); depth > 0; depth--)
    path += std::string("dir") + static_cast<char>('0' + random.below(3)) + "/";
  return path + random.name();
}

// Creates at the path unless something of another kind is in the way.
void put(Random& random, const std::string& root, const std::string& path) {
  std::string full = root + "/" + path;
  std::error_code error;
  stdfs::create_directories(stdfs::path(full).parent_path(), error);
  if (error || stdfs::exists(stdfs::symlink_status(full))) return;
  if (random.one_in(8)) {
    stdfs::create_symlink(random.one_in(2) ? "a" : "../x\ty", full, error);
    return;
  }
  std::ofstream(full, std::ios::binary) << random.text();
  if (random.one_in(5)) stdfs::permissions(full, stdfs::perms(0755), error);
}

void edit(Random& random, const std::string& root,
          std::map<std::string, std::string>& moved,
          const std::set<std::string>& base) {
  auto files = files_of(root);
  std::error_code error;
  if (files.empty() || random.one_in(4))
    return put(random, root, random_path(random));
  std::string path = files[random.below(files.size())];
  std::string full = root + "/" + path;
  bool link = stdfs::is_symlink(stdfs::symlink_status(full));
  switch (random.below(6)) {
    case 0:
      stdfs::remove(full, error);
      moved.erase(path);
      break;
    case 1:
      if (!link) stdfs::permissions(full, stdfs::perms(0755), error);
      break;
    case 2: {  // change of type
      stdfs::remove(full, error);
      moved.erase(path);
      if (link) {
        std::ofstream(full, std::ios::binary) << random.text();
      } else {
        stdfs::create_symlink("elsewhere", full, error);
      }
      break;
    }
    case 3: {  // move, as the draft's tree would know it
      std::string to = random_path(random);
      std::string target = root + "/" + to;
      stdfs::create_directories(stdfs::path(target).parent_path(), error);
      if (error || stdfs::is_directory(stdfs::symlink_status(target)) ||
          to == path)
        break;
      stdfs::rename(full, target, error);
      if (error) break;
      std::string from = moved.contains(path)  ? moved[path]
                         : base.contains(path) ? path
                                               : "";
      moved.erase(path);
      moved.erase(to);
      if (!from.empty() && from != to) moved[to] = from;
      break;
    }
    default:
      if (!link) {
        std::string old = TwoTrees::read(full);
        std::ofstream(full, std::ios::binary) << random.edited(old);
      }
  }
}

// A base path may be the origin of one move only, and not of something that
// was made anew; keeps the fixture's idea of moves what a tree would report.
void keep_true_moves(std::map<std::string, std::string>& moved,
                     const std::string& base, const std::string& draft) {
  std::set<std::string> used;
  for (auto it = moved.begin(); it != moved.end();) {
    auto now = stdfs::symlink_status(draft + "/" + it->first);
    auto old = stdfs::symlink_status(base + "/" + it->second);
    bool good = now.type() == old.type() && used.insert(it->second).second;
    it = good ? std::next(it) : moved.erase(it);
  }
}

}  // namespace

TEST_CASE("git apply of the patch on the base gives the draft") {
  for (unsigned seed = 1; seed <= 60; seed++) {
    INFO("seed " << seed);
    Random random(seed);
    TwoTrees tree;
    for (size_t i = random.below(25); i > 0; i--)
      put(random, tree.base(), random_path(random));
    tree.copy_base();
    auto files = files_of(tree.base());
    std::set<std::string> base(files.begin(), files.end());
    std::map<std::string, std::string> moved;
    for (size_t i = random.below(12) + 1; i > 0; i--)
      edit(random, tree.draft(), moved, base);
    keep_true_moves(moved, tree.base(), tree.draft());

    auto view = tree.view(moved);
    auto set = build_change_set(*view, {});
    REQUIRE(set);
    std::string patch;
    PatchOptions options;
    // Not 0: without context, repeated lines are ambiguous to git itself.
    options.context = static_cast<unsigned>(random.below(5)) + 1;
    auto report = write_patch(*view, *set, options,
                              [&](std::string_view s) { patch += s; });
    REQUIRE(report);
    TwoTrees::write(tree.top() + "/patch", patch);

    auto expected = TwoTrees::listing(tree.draft());
    bool differs = TwoTrees::listing(tree.base()) != expected;
    CHECK(patch.empty() == !differs);
    std::string apply =
        "cd '" + tree.base() + "' && git apply --whitespace=nowarn --binary ";
    if (differs) REQUIRE(TwoTrees::run(apply + "../patch") == 0);
    CHECK(TwoTrees::listing(tree.base()) == expected);
    if (differs) CHECK(TwoTrees::run(apply + "-R ../patch") == 0);
  }
}

TEST_CASE("git diff names the same paths as we do") {
  for (unsigned seed = 100; seed < 130; seed++) {
    INFO("seed " << seed);
    Random random(seed);
    TwoTrees tree;
    for (size_t i = random.below(25); i > 0; i--)
      put(random, tree.base(), random_path(random));
    tree.copy_base();
    std::map<std::string, std::string> moved;
    for (size_t i = random.below(12) + 1; i > 0; i--)
      edit(random, tree.draft(), moved, {});
    auto view = tree.view();
    auto set = build_change_set(*view, {});
    REQUIRE(set);
    std::string ours;
    REQUIRE(render_name_status(*view, *set, {}, true,
                               [&](std::string_view s) { ours += s; }));
    std::string theirs = TwoTrees::output(
        "cd '" + tree.top() +
        "' && git -c core.fileMode=true diff --no-index --no-renames "
        "--name-status -z base draft");
    // git gives "base/x" or "draft/x"; ours are relative.
    std::set<std::string> a, b;
    auto collect = [](const std::string& text, std::set<std::string>& out) {
      std::istringstream in(text);
      std::string status, path;
      while (std::getline(in, status, '\0') && std::getline(in, path, '\0')) {
        for (std::string_view top : {"base/", "draft/"})
          if (path.starts_with(top)) path = path.substr(top.size());
        if (status == "T") status = "M";
        if (status[0] == 'R') {  // an exact copy whose source was deleted
          out.insert("D " + path);
          std::getline(in, path, '\0');
          status = "A";
        }
        out.insert(status + " " + path);
      }
    };
    collect(ours, a);
    collect(theirs, b);
    // --no-index tells a change of type as deletion and addition.
    std::set<std::string> both;
    for (const std::string& one : b)
      if (one[0] == 'D' && b.contains("A" + one.substr(1)))
        both.insert(one.substr(2));
    for (const std::string& path : both) {
      b.erase("D " + path);
      b.erase("A " + path);
      b.insert("M " + path);
    }
    CHECK(a == b);
  }
}
