// SPDX-License-Identifier: Apache-2.0
// Contents that are meant to hurt: sizes, holes, single lines, many files.
#include <sys/resource.h>

#include "catch_shim.h"
#include "diff/content_hash.h"
#include "diff/hunks.h"
#include "diff/patch.h"
#include "diff/render.h"
#include "diff/risk_package.h"
#include "diff/risk_text.h"
#include "diff/secrets.h"
#include "memory_view.h"

using namespace stoplog;
using namespace stoplog::diff;

namespace {

RenderOptions on_terminal() {
  RenderOptions options;
  options.terminal = true;
  return options;
}

}  // namespace

TEST_CASE("a sparse terabyte costs what its data costs") {
  auto sparse = std::make_shared<SparseContent>(1ull << 40, 1ull << 39, "data");
  MemoryView view;
  view.change("huge", file(sparse));
  auto set = build_change_set(view, {});
  REQUIRE(set);
  CHECK(set->changes[0].too_large);
  CHECK(sparse->bytes_read < 2 << 20);
  std::string patch;
  auto report = write_patch(view, *set, {}, [&](auto s) { patch += s; });
  REQUIRE(report);
  CHECK(report->not_in_patch.size() == 1);
  CHECK(patch.find("Binary files /dev/null and b/huge differ") !=
        std::string::npos);
  CHECK(sparse->bytes_read < 4 << 20);
}

TEST_CASE("a hash beyond the plain limit depends on bytes and not on holes") {
  uint64_t size = kPlainLimit + 12345;
  SparseContent sparse(size, kHashBlock * 7 + 5, "payload");
  class Dense : public SparseContent {
   public:
    using SparseContent::SparseContent;
    std::vector<Range> data() const override { return {{0, size()}}; }
  };
  Dense dense(size, kHashBlock * 7 + 5, "payload");
  SparseContent other(size, kHashBlock * 7 + 6, "payload");
  SparseContent longer(size + 1, kHashBlock * 7 + 5, "payload");
  CHECK(hash_content(sparse)->sha256 == hash_content(dense)->sha256);
  CHECK(hash_content(sparse)->xxh3 == hash_content(dense)->xxh3);
  CHECK(hash_content(sparse)->sha256 != hash_content(other)->sha256);
  CHECK(hash_content(sparse)->sha256 != hash_content(longer)->sha256);
  CHECK(*same_content(sparse, dense));
  CHECK_FALSE(*same_content(sparse, other));
}

TEST_CASE("a plain hash is what sha256sum gives") {
  CHECK(hex(content_sha256(TextContent("abc")).value()) ==
        "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  CHECK(hex(*git_blob_id(TextContent("hello\n"))) ==
        "ce013625030ba8dba906f756967f9e9ca394464a");
  CHECK(git_blob_id("hello\n") == *git_blob_id(TextContent("hello\n")));
}

TEST_CASE("one line of four gigabytes is named and not shown") {
  MemoryView view;
  view.change("line", file(std::make_shared<RepeatedContent>(4ull << 30, 'a')));
  DiffOptions options;
  options.digest = false;  // hashing them takes seconds and no memory
  auto set = build_change_set(view, options);
  REQUIRE(set);
  std::string shown;
  REQUIRE(
      render_terminal(view, *set, on_terminal(), [&](auto s) { shown += s; }));
  CHECK(shown.find("too large to be shown by lines") != std::string::npos);
  CHECK(shown.size() < 2000);
}

TEST_CASE("a long line is cut on the terminal with a mark that says so") {
  MemoryView view;
  view.change("line", file(std::string(5 << 20, 'a')));
  auto set = build_change_set(view, {});
  REQUIRE(set);
  std::string shown;
  REQUIRE(
      render_terminal(view, *set, on_terminal(), [&](auto s) { shown += s; }));
  CHECK(shown.find("bytes of this line are not shown") != std::string::npos);
  CHECK(shown.size() < 5000);
}

TEST_CASE("a patch of large contents streams within bounds") {
  MemoryView view;
  view.base["big"] = file(std::make_shared<RepeatedContent>(100 << 20, 'a'));
  view.change("big", file(std::make_shared<RepeatedContent>(200 << 20, 'b')));
  DiffOptions options;
  options.digest = false;
  auto set = build_change_set(view, options);
  REQUIRE(set);
  struct rusage before{};
  ::getrusage(RUSAGE_SELF, &before);
  size_t largest = 0, total = 0;
  REQUIRE(write_patch(view, *set, {}, [&](std::string_view s) {
    largest = std::max(largest, s.size());
    total += s.size();
  }));
  struct rusage after{};
  ::getrusage(RUSAGE_SELF, &after);
  CHECK(largest < 1 << 20);
  CHECK(total > 100'000);
  CHECK(after.ru_maxrss - before.ru_maxrss < 64 << 10);  // KiB
}

TEST_CASE("a thousand components deep is only a long name") {
  MemoryView view;
  std::string name;
  for (int i = 0; i < 1000; i++) {
    name += (name.empty() ? "" : "/") + std::string(100, 'd');
    view.change(name, dir());
  }
  view.change(name + "/leaf", file("x"));
  auto set = build_change_set(view, {});
  REQUIRE(set);
  CHECK(set->changes.size() == 1);
  CHECK(set->directories.size() == 1000);
}

TEST_CASE("twenty thousand files are all listed") {
  MemoryView view;
  for (int i = 0; i < 20000; i++)
    view.change("f" + std::to_string(i), file(std::to_string(i) + "\n"));
  auto set = build_change_set(view, {});
  REQUIRE(set);
  size_t lines = 0;
  render_list(*set, {}, [&](std::string_view s) {
    lines += static_cast<size_t>(std::count(s.begin(), s.end(), '\n'));
  });
  CHECK(lines == 20001);
}

TEST_CASE("a text full of beginnings of secrets is read in linear time") {
  // Heads without an end of line took the square of the size, tokens 4 KiB for
  // each that begins.
  std::string heads;
  while (heads.size() < kTextLimit - 64) heads += "-----BEGIN PRIVATE KEY ";
  CHECK(find_secrets(heads, 10).empty());
  std::string tokens;
  while (tokens.size() < kTextLimit - 64) tokens += "eyJhbGciOi.";
  auto found = find_secrets(tokens, 10);
  REQUIRE(found.size() == 1);
  CHECK(found[0].what == kUnreadSecrets);
  // Said even of a text that had such beginnings before.
  auto risks = risks_of_text("eyJhbGciOi.\n", tokens, nullptr);
  REQUIRE_FALSE(risks.empty());
  CHECK(risks[0].level == Level::kDanger);
  // Ordinary text with a token in it is far from that bound.
  std::string key =
      "AKIA"
      "QWERTYUIOPASDFGH";
  std::string text;
  while (text.size() < 1 << 20) text += "token eyJhbGciOi sk- ghp_ SG. x\n";
  text += key + "\n";
  found = find_secrets(text, 10);
  REQUIRE(found.size() == 1);
  CHECK(found[0].value == key);
}

TEST_CASE("a package file nested without end is no end of the stack") {
  std::string deep(500'000, '[');
  deep += std::string(500'000, ']');
  std::string text =
      "{\"scripts\": {\"x\": " + deep + ", \"postinstall\": \"curl evil\"}}";
  auto risks = risks_of_package("package.json", "", text);
  REQUIRE_FALSE(risks.empty());
  CHECK(std::ranges::any_of(risks, [](const Risk& risk) {
    return risk.level == Level::kDanger &&
           risk.message.find("curl evil") != std::string::npos;
  }));
  CHECK(risks_of_package("package.json", text, text).empty());
}

TEST_CASE("texts without end in which nothing is alike are not searched") {
  uint32_t seed = 1;
  auto noise = [&] {
    std::string out;
    for (int i = 0; i < 3000; i++) {
      seed = seed * 1664525 + 1013904223;
      out += std::to_string((seed >> 16) % 40) + "\n";
    }
    return std::make_shared<const std::string>(std::move(out));
  };
  const auto before = noise(), after = noise();
  SearchBudget budget;
  bool settled = true;
  auto exact = count_texts(before, after, settled, &budget);
  REQUIRE(exact);
  CHECK(exact->lines_added() < 3000);
  size_t texts = 1;
  while (budget.take(6000)) texts++;
  // A thousand ordinary files are within it, a million lines of noise not.
  CHECK(texts > 500);
  CHECK(texts < 2000);
  settled = true;
  auto bounded = count_texts(before, after, settled, &budget);
  REQUIRE(bounded);
  CHECK_FALSE(settled);  // what is not the shortest is nobody's to keep
  CHECK(bounded->lines_added() > exact->lines_added());
  std::vector<size_t> all(bounded->edits.size());
  for (size_t i = 0; i < all.size(); i++) all[i] = i;
  CHECK(apply_edits(*bounded, all).value() == *after);
  // A patch and an approval of a part are exact all the same.
  CHECK(diff_texts(before, after)->lines_added() == exact->lines_added());
}
