// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <random>

#include "base/strings.h"
#include "catch_shim.h"
#include "diff/hunks.h"
#include "diff/windows.h"
#include "two_trees.h"

using namespace stoplog;
using namespace stoplog::diff;

namespace {

std::string random_text(std::mt19937& engine, size_t most) {
  std::string out;
  for (size_t i = engine() % (most + 1); i > 0; i--)
    out += std::string(1, static_cast<char>('a' + engine() % 5)) + "\n";
  if (!out.empty() && engine() % 4 == 0) out.pop_back();
  return out;
}

std::string text_of(const Hunk& hunk, std::string_view origins) {
  std::string out;
  for (const Line& line : hunk.lines)
    if (origins.find(line.origin) != std::string_view::npos) out += line.text;
  return out;
}

TextDiff compare(std::string a, std::string b) {
  auto result = diff_texts(std::move(a), std::move(b));
  REQUIRE(result);
  return std::move(*result);
}

}  // namespace

TEST_CASE("all edits give the new text and none the old") {
  std::mt19937 engine(7);
  for (int i = 0; i < 2000; i++) {
    std::string a = random_text(engine, 20), b = random_text(engine, 20);
    TextDiff d = compare(a, b);
    std::vector<size_t> all(d.edits.size());
    for (size_t k = 0; k < all.size(); k++) all[k] = k;
    CHECK(*apply_edits(d, all) == b);
    CHECK(*apply_edits(d, {}) == a);
  }
}

TEST_CASE("some edits change their own lines and no others") {
  std::mt19937 engine(8);
  for (int i = 0; i < 500; i++) {
    std::string a = random_text(engine, 30), b = random_text(engine, 30);
    TextDiff d = compare(a, b);
    std::vector<size_t> chosen, rest;
    for (size_t k = 0; k < d.edits.size(); k++)
      (engine() % 2 == 0 ? chosen : rest).push_back(k);
    std::string half = *apply_edits(d, chosen);
    // Line by line: what a reader would do with the chosen edits by hand.
    std::string expected;
    uint32_t at = 0;
    for (size_t k = 0; k < d.edits.size(); k++) {
      const Edit& e = d.edits[k];
      for (; at < e.old_line; at++) expected += d.old_lines[at];
      bool taken = std::count(chosen.begin(), chosen.end(), k) > 0;
      for (uint32_t n = 0; n < (taken ? e.new_count : e.old_count); n++)
        expected +=
            taken ? d.new_lines[e.new_line + n] : d.old_lines[e.old_line + n];
      at = e.old_line + e.old_count;
    }
    for (; at < d.old_lines.count(); at++) expected += d.old_lines[at];
    CHECK(half == expected);
  }
}

TEST_CASE("an edit that does not exist is refused") {
  TextDiff d = compare("a\n", "b\n");
  std::vector<size_t> wrong{1};
  CHECK_FALSE(apply_edits(d, wrong));
}

TEST_CASE("hunks carry context and split into their edits") {
  TextDiff d =
      compare("1\n2\n3\n4\n5\n6\n7\n8\n9\n", "1\nX\n3\n4\n5\n6\nY\n8\n9\n");
  auto hunks = make_hunks(d, 3);
  REQUIRE(hunks.size() == 1);
  CHECK(hunks[0].old_start == 1);
  CHECK(hunks[0].old_lines == 9);
  CHECK(make_hunks(d, 1).size() == 2);
  auto split = split_hunk(d, hunks[0], 3);
  REQUIRE(split.size() == 2);
  CHECK(text_of(split[0], " -") == "1\n2\n3\n4\n5\n");
  CHECK(text_of(split[0], "+") == "X\n");
  CHECK(split[1].first_edit == 1);
  CHECK(text_of(split[1], "-") == "7\n");
}

TEST_CASE("hunk ranges follow the unified format at the edges") {
  auto only = [](std::string a, std::string b, unsigned context) {
    TextDiff d = compare(std::move(a), std::move(b));
    auto hunks = make_hunks(d, context);
    REQUIRE(hunks.size() == 1);
    return std::vector<uint32_t>{hunks[0].old_start, hunks[0].old_lines,
                                 hunks[0].new_start, hunks[0].new_lines};
  };
  CHECK(only("", "a\nb\n", 3) == std::vector<uint32_t>{0, 0, 1, 2});
  CHECK(only("a\nb\n", "", 3) == std::vector<uint32_t>{1, 2, 0, 0});
  CHECK(only("a\nc\n", "a\nb\nc\n", 0) == std::vector<uint32_t>{1, 0, 2, 1});
  CHECK(only("a\nb\nc\n", "a\nc\n", 0) == std::vector<uint32_t>{2, 1, 1, 0});
}

TEST_CASE("the header names the enclosing function") {
  std::string a = "int main() {\n", b;
  for (int i = 0; i < 20; i++) a += "  step(" + std::to_string(i) + ");\n";
  b = a + "  more();\n}\n";
  TextDiff d = compare(a + "}\n", b);
  auto hunks = make_hunks(d, 3);
  REQUIRE(hunks.size() == 1);
  CHECK(hunks[0].header == "int main() {");
}

TEST_CASE("a long common head and tail is cut and changes nothing") {
  std::string head, tail;
  for (int i = 0; i < 20000; i++) head += "head " + std::to_string(i) + "\n";
  for (int i = 0; i < 20000; i++) tail += "tail " + std::to_string(i) + "\n";
  TextDiff d = compare(head + "old\n" + tail, head + "new\nlines\n" + tail);
  REQUIRE(d.edits.size() == 1);
  CHECK(d.edits[0] == Edit{20000, 1, 20000, 2});
}

TEST_CASE("windows leave out only what is the same") {
  std::mt19937 engine(9);
  for (int i = 0; i < 300; i++) {
    // Long texts with a few edits far apart, and some close together.
    std::vector<std::string> lines(engine() % 900 + 1);
    for (auto& line : lines) line = std::to_string(engine() % 50) + "\n";
    auto edited = lines;
    for (size_t k = engine() % 8; k > 0; k--) {
      size_t at = engine() % (edited.size() + 1);
      if (engine() % 2 == 0 || edited.empty()) {
        edited.insert(edited.begin() + static_cast<long>(at), "new\n");
      } else {
        edited.erase(edited.begin() +
                     static_cast<long>(std::min(at, edited.size() - 1)));
      }
    }
    std::string a, b;
    for (auto& line : lines) a += line;
    for (auto& line : edited) b += line;
    TextDiff d = compare(a, b);  // fails when they do not add up
    std::vector<size_t> all(d.edits.size());
    for (size_t k = 0; k < all.size(); k++) all[k] = k;
    CHECK(*apply_edits(d, all) == b);
    CHECK(d.lines_added() <= 30);
    CHECK(d.lines_deleted() <= 30);
  }
}

TEST_CASE("edits that are found without the library are the shortest") {
  // Against the textbook: the longest common subsequence, by table.
  auto kept = [](const Lines& a, const Lines& b) {
    std::vector<std::vector<uint32_t>> best(
        a.count() + 1, std::vector<uint32_t>(b.count() + 1));
    for (uint32_t i = 1; i <= a.count(); i++)
      for (uint32_t j = 1; j <= b.count(); j++)
        best[i][j] = a[i - 1] == b[j - 1]
                         ? best[i - 1][j - 1] + 1
                         : std::max(best[i - 1][j], best[i][j - 1]);
    return best[a.count()][b.count()];
  };
  std::mt19937 engine(10);
  size_t without = 0, moved = 0;
  for (int i = 0; i < 1500; i++) {
    std::vector<std::string> lines(engine() % 60 + 1);
    for (auto& line : lines) line = std::to_string(engine() % 40) + "\n";
    auto edited = lines;
    for (size_t k = engine() % 3 + 1; k > 0; k--) {
      size_t at = engine() % edited.size();
      std::string line = std::to_string(engine() % 80) + "\n";
      if (engine() % 3 == 0) edited[at] = line;
      if (engine() % 3 == 0) edited.insert(edited.begin() + long(at), line);
      if (engine() % 3 == 0 && edited.size() > 1)
        edited.erase(edited.begin() + long(at));
    }
    std::string a, b;
    for (auto& line : lines) a += line;
    for (auto& line : edited) b += line;
    Lines x(std::make_shared<const std::string>(a));
    Lines y(std::make_shared<const std::string>(b));
    for (Window& w : find_windows(x, y)) {
      if (!settle_parts(x, y, w)) continue;
      (parts_can_move(x, y, w) ? moved : without)++;
      uint64_t gone = 0, come = 0;
      for (const Edit& part : w.parts)
        gone += part.old_count, come += part.new_count;
      uint32_t most = kept(x, y);
      CHECK(x.count() - gone == most);
      CHECK(y.count() - come == most);
    }
    bool settled = false;
    auto counted = count_texts(std::make_shared<const std::string>(a),
                               std::make_shared<const std::string>(b), settled);
    REQUIRE(counted);
    TextDiff whole = compare(a, b);
    CHECK(counted->lines_added() == whole.lines_added());
    CHECK(counted->lines_deleted() == whole.lines_deleted());
    if (settled) CHECK(counted->edits == whole.edits);
  }
  CHECK(without > 300);
  CHECK(moved > 20);
}

TEST_CASE("edits between lines that stay are git's own") {
  // Changes so close together that no run of common lines is between them.
  TwoTrees trees;
  std::mt19937 engine(12);
  std::map<std::string, std::string> ours;
  for (int i = 0; i < 400; i++) {
    unsigned kinds = i % 2 == 0 ? 1000 : 12;
    std::vector<std::string> lines(engine() % 12 + 1);
    for (auto& line : lines) line = std::to_string(engine() % kinds) + "\n";
    auto edited = lines;
    for (size_t k = engine() % 4 + 1; k > 0; k--) {
      size_t at = engine() % edited.size();
      std::string line = std::to_string(engine() % kinds) + "\n";
      if (engine() % 2 == 0) edited[at] = line;
      if (engine() % 2 == 0) edited.insert(edited.begin() + long(at), line);
    }
    std::string a, b, name = fmt::format("{:03}", i);
    for (auto& line : lines) a += line;
    for (auto& line : edited) b += line;
    trees.write(trees.base() + "/" + name, a);
    trees.write(trees.draft() + "/" + name, b);
    TextDiff text = compare(a, b);
    for (const Hunk& h : make_hunks(text, 0)) {
      auto range = [](uint32_t start, uint32_t count) {
        return count == 1 ? fmt::format("{}", start)
                          : fmt::format("{},{}", start, count);
      };
      ours[name] +=
          fmt::format("@@ -{} +{} @@\n", range(h.old_start, h.old_lines),
                      range(h.new_start, h.new_lines));
    }
  }
  std::map<std::string, std::string> theirs;
  std::string name;
  std::string said = trees.output("git diff --no-index -U0 '" + trees.base() +
                                  "' '" + trees.draft() + "'");
  for (std::string_view line : split(said, '\n')) {
    if (line.starts_with("diff ")) name = line.substr(line.size() - 3);
    if (line.starts_with("@@")) theirs[name] += std::string(line) + "\n";
  }
  CHECK(ours.size() > 300);
  for (const auto& [file, hunks] : ours) {
    INFO(file);
    CHECK(theirs[file] == hunks);
  }
  CHECK(ours.size() == theirs.size());
}

TEST_CASE("known edits are taken when they fit and found anew when not") {
  auto text = [](std::string s) {
    return std::make_shared<const std::string>(std::move(s));
  };
  // Not what would be found, but right: the whole text replaced.
  std::vector<Edit> whole{{0, 3, 0, 3}};
  auto taken = diff_texts(text("1\n2\n3\n"), text("1\nX\n3\n"), &whole);
  REQUIRE(taken);
  CHECK(taken->edits == whole);
  for (std::vector<Edit> wrong :
       {std::vector<Edit>{{0, 1, 0, 1}}, {{1, 9, 1, 9}}, {{5, 1, 5, 1}}, {}}) {
    auto found = diff_texts(text("1\n2\n3\n"), text("1\nX\n3\n"), &wrong);
    REQUIRE(found);
    CHECK(found->edits == std::vector<Edit>{{1, 1, 1, 1}});
  }
}

TEST_CASE("lines are found at every length of a text") {
  std::mt19937 engine(11);
  for (size_t size = 0; size < 200; size++) {
    std::string s;
    for (size_t i = 0; i < size; i++) s += engine() % 5 == 0 ? '\n' : 'x';
    std::vector<std::string> want(1);
    for (char c : s) {
      want.back() += c;
      if (c == '\n') want.emplace_back();
    }
    if (want.back().empty()) want.pop_back();
    Lines lines(std::make_shared<const std::string>(s));
    REQUIRE(lines.count() == want.size());
    for (uint32_t i = 0; i < lines.count(); i++) CHECK(lines[i] == want[i]);
  }
}

TEST_CASE("too many lines and too many bytes are refused as too large") {
  std::string lines(kLineLimit + 1, '\n');
  auto many = diff_texts("", lines);
  REQUIRE_FALSE(many);
  CHECK(many.error().err() == EFBIG);
  auto large = diff_texts("", std::string(kTextLimit + 1, 'a'));
  REQUIRE_FALSE(large);
  CHECK(large.error().err() == EFBIG);
}

TEST_CASE("an edit's name depends on its place and its lines alone") {
  TextDiff d = compare("1\n2\n3\n", "1\nX\n3\n");
  TextDiff more = compare("1\n2\n3\n", "1\nX\n3\n4\n");
  TextDiff other = compare("1\n2\n3\n", "1\nY\n3\n");
  CHECK(edit_digest(d, 0) == edit_digest(more, 0));
  CHECK(edit_digest(d, 0) != edit_digest(other, 0));
  CHECK(edit_digest(more, 0) != edit_digest(more, 1));
}
