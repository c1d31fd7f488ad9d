// SPDX-License-Identifier: Apache-2.0
// Holes of the real file, once it is written to.
#include <filesystem>

#include "catch_shim.h"
#include "tree_fixture.h"

using namespace stoplog;
using namespace stoplog::fs;
using stoplog::test::TreeFixture;
namespace stdfs = std::filesystem;

namespace {

constexpr uint64_t kBlock = 64u << 10;

// Data at 0 and at 8 blocks, of `blocks` in all.
void make_sparse(const TreeFixture& f, uint64_t blocks) {
  f.base.write("file", "begin");
  stdfs::resize_file(f.base / "file", 8 * kBlock);
  {
    std::ofstream more(f.base / "file", std::ios::binary | std::ios::app);
    more << std::string(4096, 'm');
  }
  stdfs::resize_file(f.base / "file", blocks * kBlock);
}

// Data as "begin-end" in blocks, ends rounded up.
std::string data_of(TreeFixture& f) {
  NodeId id = f.at("file");
  uint64_t size = f.attr("file").size;
  std::string out;
  for (uint64_t at = 0; at < size;) {
    auto begin = f.tree->lseek(id, at, SEEK_DATA);
    if (!begin) {
      CHECK(begin.error().err() == ENXIO);
      break;
    }
    at = f.tree->lseek(id, *begin, SEEK_HOLE).value();
    out += fmt::format(" {}-{}", *begin / kBlock, (at + kBlock - 1) / kBlock);
  }
  return out;
}

}  // namespace

TEST_CASE("holes of a large real file are holes after a write to it") {
  TreeFixture f;
  make_sparse(f, 40);
  f.open();
  CHECK(data_of(f) == " 0-1 8-9");
  CHECK(f.write("file", std::string(4096, 'w'), 20 * kBlock) == 0);
  CHECK(data_of(f) == " 0-1 8-9 20-21");
  CHECK(f.tree->settle());  // now it stands on a copy of its own
  CHECK(f.tree->unpinned().empty());
  CHECK(data_of(f) == " 0-1 8-9 20-21");
  f.reopen();
  CHECK(data_of(f) == " 0-1 8-9 20-21");
}

TEST_CASE("a small real file that is taken whole keeps its holes") {
  TreeFixture f;
  make_sparse(f, 12);
  f.open();
  CHECK(f.write("file", std::string(4096, 'w'), 10 * kBlock) == 0);
  CHECK(data_of(f) == " 0-1 8-9 10-11 11-12");
  std::string want =
      "begin" + std::string(8 * kBlock - 5, '\0') + std::string(4096, 'm');
  CHECK(f.read("file").substr(0, want.size()) == want);
  f.reopen();
  // What comes next does not run into what was left out.
  CHECK(f.create("other", std::string(3 * kBlock, 'o')) == 0);
  CHECK(f.read("file").substr(0, want.size()) == want);
  CHECK(f.read("file").size() == 12 * kBlock);
}
