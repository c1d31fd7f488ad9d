// SPDX-License-Identifier: Apache-2.0
// Git directories that are meant to hurt: files whose reading could be made to
// cost more than they have bytes, and names that are meant to deceive.
#include <zlib.h>

#include "base/strings.h"
#include "catch_shim.h"
#include "diff/git_meta.h"
#include "diff/git_pack_index.h"
#include "diff/git_split_index.h"
#include "diff/hunks.h"
#include "diff/patch.h"
#include "diff/render.h"
#include "risk_codes.h"

using namespace stoplog;
using namespace stoplog::diff;

namespace {

std::string big(uint64_t value, size_t bytes) {
  std::string out;
  for (size_t i = bytes; i-- > 0;)
    out += static_cast<char>(value >> (8 * i) & 0xff);
  return out;
}

std::string id(char c) { return std::string(40, c); }

// A pack's index with these ids, in order; what follows them is left out.
std::string pack_index(const std::vector<std::string>& ids) {
  std::string out("\377tOc\0\0\0\2", 8);
  for (int i = 0; i < 256; i++) out += big(ids.size(), 4);
  for (const std::string& one : ids) out += one;
  return out;
}

std::string loose_commit(size_t number, const std::string& parent) {
  std::string text = "tree " + id('a') + "\nparent " + parent + "\n\nsubject " +
                     std::to_string(number) + "\n" + std::string(60000, 'x');
  text = "commit " + std::to_string(text.size()) + '\0' + text;
  uLongf size = compressBound(text.size());
  std::string out(size, '\0');
  compress(reinterpret_cast<Bytef*>(out.data()), &size,
           reinterpret_cast<const Bytef*>(text.data()), text.size());
  out.resize(size);
  return out;
}

struct Repository : MemoryView {
  Repository() {
    both(".git", dir());
    both(".git/HEAD", file("ref: refs/heads/main\n"));
  }
  void ref(const std::string& name, const std::string& text) {
    change(".git/refs/heads/" + name, file(text));
  }
  Sha256Digest digest() const { return *build(*this).digest; }
};

}  // namespace

TEST_CASE("the digest tells a ref with an odd name from two refs") {
  Repository two, one;
  two.ref("a", id('1') + "\n");
  two.ref("b", id('2') + "\n");
  one.ref("a - " + id('1') + "\nref 15 refs/heads/b", id('2') + "\n");
  CHECK(two.digest() != one.digest());
  Repository plain;
  plain.ref("a - " + id('1') + "\nref refs/heads/b", id('2') + "\n");
  CHECK(two.digest() != plain.digest());
}

TEST_CASE("the digest holds the bytes of a ref that we cannot read") {
  Repository one, other;
  one.ref("a", "ref:refs/heads/x\n");  // git needs no space
  other.ref("a", "ref:refs/heads/y\n");
  CHECK(one.digest() != other.digest());
  ChangeSet set = build(one);
  REQUIRE(set.find(path(".git")) != nullptr);
  CHECK(set.find(path(".git"))->git->summary().find("unreadable") !=
        std::string::npos);
}

TEST_CASE("names of refs are escaped wherever they are shown") {
  Repository repo;
  repo.ref("a\x1b[2J\x9b\x7f\u202E", id('1') + "\n");
  ChangeSet set = build(repo);
  std::string out;
  auto sink = [&](std::string_view s) { out += s; };
  RenderOptions options;
  options.terminal = true;
  render_list(set, options, sink);
  REQUIRE(render_terminal(repo, set, options, sink));
  render_summary(set, options, sink);
  JsonOptions json;
  json.terminal = true;
  render_json(set, json, sink);
  CHECK(out.find("[2J") != std::string::npos);
  for (const char* raw : {"\x1b", "\x9b", "\x7f", "\u202E"})
    CHECK(out.find(raw) == std::string::npos);
}

TEST_CASE("JSON on a terminal has nothing that it could obey") {
  MemoryView view;
  view.change("x\x7f\u009b\u202Ey", file("x"));
  ChangeSet set = build(view);
  std::string out;
  JsonOptions options;
  options.terminal = true;
  render_json(set, options, [&](std::string_view s) { out += s; });
  CHECK(out.find("x\\u007f\\u009b\\u202ey") != std::string::npos);
  RenderOptions names;
  names.terminal = true;
  out.clear();
  REQUIRE(render_name_status(view, set, names, true,
                             [&](std::string_view s) { out += s; }));
  CHECK(out.find('\x7f') == std::string::npos);
}

TEST_CASE("subjects of a hundred thousand refs are not all read") {
  Repository repo;
  std::string packed;
  for (int n = 0; n < 20000; n++)
    packed += id('1') + " refs/heads/b" + std::to_string(n) + "\n";
  repo.change(".git/packed-refs", file(packed));
  repo.change(".git/objects/11/" + std::string(38, '1'),
              file(loose_commit(1, id('2'))));
  repo.change(".git/objects/22/" + std::string(38, '2'),
              file(loose_commit(2, id('1'))));
  ChangeSet set = build(repo);
  const GitChange& git = *set.find(path(".git"))->git;
  REQUIRE(git.refs.size() == 20000);
  size_t subjects = 0;
  for (const RefMove& ref : git.refs) subjects += ref.subjects.size();
  CHECK(git.refs[0].subjects ==
        std::vector<std::string>{"subject 1", "subject 2"});
  CHECK(subjects <= 400);
}

TEST_CASE("many small packs beside a large one that is gone cost little") {
  std::vector<std::string> ids;
  for (uint64_t n = 0; n < 200000; n++)
    ids.push_back(big(n << 40, 8) + std::string(12, 'x'));
  MissingObjects missing(ObjectFormat::kSha1, {}, {pack_index(ids)});
  std::string last = pack_index({std::string(20, '\xff')});
  // Minutes when each goes through all that is missing.
  for (int n = 0; n < 20000; n++)
    missing.found_in(pack_index_ids(last, ObjectFormat::kSha1));
  missing.found_in(pack_index_ids(pack_index(ids), ObjectFormat::kSha1));
  CHECK(missing.left().empty());
}

TEST_CASE("an index whose names share long beginnings is refused") {
  constexpr size_t kLong = 60000;
  std::string bytes = "DIRC" + big(4, 4);
  size_t count = 10000;
  bytes += big(count, 4);
  for (size_t n = 0; n < count; n++) {
    bytes += std::string(60, '\0') + big(0xfff, 2);
    if (n == 0) {
      bytes += '\0' + std::string(kLong, 'a') + "00000" + '\0';
    } else {
      bytes += '\5' + fmt::format("{:05}", n) + '\0';
    }
  }
  bytes += std::string(20, '\0');
  auto delta = compare_indexes({"", {}}, {bytes, {}});
  REQUIRE_FALSE(delta);
  CHECK(delta.error().text().find("too long") != std::string::npos);
}

TEST_CASE("deletions all over a file are found in linear time") {
  // 4,000,000 lines of which each sixth goes: 20 windows of as many parts.
  std::string before, after;
  for (int n = 0; before.size() < (7u << 20); n++) {
    std::string line(1, static_cast<char>('a' + n % 26));
    before += line + "\n";
    if (n % 6 != 0) after += line + "\n";
  }
  auto diff = diff_texts(before, after);
  // Beyond the bound of lines it may be refused, but never searched for long.
  if (!diff) CHECK(diff.error().err() == EFBIG);
}

TEST_CASE("a mode that git does not keep is named beside other changes") {
  MemoryView view;
  view.base["f"] = file("old", 0644);
  view.change("f", file("new", 0600));
  ChangeSet set = build(view);
  auto report = write_patch(view, set, {}, [](std::string_view) {});
  REQUIRE(report);
  REQUIRE(report->not_in_patch.size() == 1);
  CHECK(report->not_in_patch[0].find("git does not keep") != std::string::npos);
}

TEST_CASE("a rename of what is too large for a patch is only a rename") {
  MemoryView view;
  auto content = std::make_shared<SparseContent>(4ull << 30, 0, "x");
  view.base["a"] = file(content);
  view.change("b", file(content), "a");
  ChangeSet set = build(view, {.digest = false, .risks = false});
  uint64_t read = content->bytes_read;
  std::string out;
  auto report =
      write_patch(view, set, {}, [&](std::string_view s) { out += s; });
  REQUIRE(report);
  CHECK(report->not_in_patch.empty());
  CHECK(out ==
        "diff --git a/a b/b\nsimilarity index 100%\nrename from a\n"
        "rename to b\n");
  CHECK(content->bytes_read == read);
}
