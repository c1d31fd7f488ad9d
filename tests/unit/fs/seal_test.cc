// SPDX-License-Identifier: Apache-2.0
// What is sealed, and what of a large file need not be: it is hashed once, and
// its holes never.
#include <fcntl.h>

#include "catch_shim.h"
#include "fs/history.h"
#include "timeline_fixture.h"

using namespace stoplog;
using namespace stoplog::fs;
using stoplog::test::marked;
using stoplog::test::TreeFixture;
namespace stdfs = std::filesystem;

namespace {

constexpr uint64_t kMega = 1u << 20;

// Bytes that all seals of the journal speak of.
uint64_t sealed_bytes(TreeFixture& f) {
  uint64_t sum = 0;
  HistoryVisitor visitor;
  visitor.after = [&](const State&, const Logged& logged) -> Status {
    if (const auto* seal = std::get_if<SealRecord>(&logged.record))
      sum += seal->length;
    return {};
  };
  Status walked = walk_history(f.draft.fd(), {}, visitor);
  if (!walked) FAIL(walked.error().text());
  return sum;
}

std::shared_ptr<const Content> held_content(TreeFixture& f,
                                            std::string_view path) {
  auto view = open_view({.draft_dir = f.draft.fd(), .base = f.base.fd()});
  if (!view) FAIL(view.error().text());
  auto state = (*view)->draft_state(*RelPath::parse(path));
  if (!state || !*state) FAIL("no state");
  return (*state)->content;
}

uint64_t data_bytes(const Content& content) {
  uint64_t sum = 0, end = 0;
  for (const Content::Range& range : content.data()) {
    CHECK(range.offset >= end);
    end = range.offset + range.length;
    sum += range.length;
  }
  return sum;
}

}  // namespace

TEST_CASE("a page written into a large file seals that page alone") {
  TreeFixture f;
  f.open();
  REQUIRE(f.create("file", std::string(8 * kMega, 'f')) == 0);
  marked(f);
  REQUIRE(f.tree->settle());
  CHECK(sealed_bytes(f) == 8 * kMega);
  for (uint64_t at : {5 * kMega + 4096, 2 * kMega + 8192, 7 * kMega}) {
    REQUIRE(f.write("file", std::string(4096, 'w'), at) == 0);
    marked(f);
    REQUIRE(f.tree->settle());
  }
  CHECK(sealed_bytes(f) == 8 * kMega + 3 * 4096);
  f.reopen();
  CHECK(f.read("file").substr(0, 10) == "ffffffffff");
}

TEST_CASE("holes of a large file are neither sealed nor data") {
  TreeFixture f;
  f.base.write("file", std::string(4096, 'b'));
  stdfs::resize_file(f.base / "file", 600 * kMega);
  f.open();
  REQUIRE(f.write("file", "w", 300 * kMega) == 0);
  SECTION("which stands on the real one") {
    CHECK(data_bytes(*held_content(f, "file")) <= kMega);
  }
  SECTION("which has a copy") {
    REQUIRE(f.tree->settle());
    REQUIRE(f.tree->unpinned().empty());
    marked(f);
    REQUIRE(f.tree->settle());
    CHECK(sealed_bytes(f) <= kMega);
    auto content = held_content(f, "file");
    CHECK(data_bytes(*content) <= kMega);
    std::string text(4097, '\0');
    auto n = content->read(0, std::as_writable_bytes(std::span(text)));
    REQUIRE(n);
    CHECK(text == std::string(4096, 'b') + '\0');
  }
}

TEST_CASE("content that became a hole of its segment is damage") {
  TreeFixture f;
  f.open();
  REQUIRE(f.create("file", std::string(4 * kMega, 'f')) == 0);
  marked(f);
  REQUIRE(f.tree->settle());
  f.tree.reset();
  for (const auto& e : stdfs::directory_iterator(f.draft / "segments")) {
    int fd = ::open(e.path().c_str(), O_RDWR | O_CLOEXEC);
    REQUIRE(::fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, kMega,
                        kMega) == 0);
    ::close(fd);
  }
  auto content = held_content(f, "file");
  CHECK(data_bytes(*content) == 4 * kMega);
  std::string text(kMega, '\0');
  auto n = content->read(kMega, std::as_writable_bytes(std::span(text)));
  REQUIRE_FALSE(n);
  CHECK(n.error().code() == Code::kCorrupt);
}
