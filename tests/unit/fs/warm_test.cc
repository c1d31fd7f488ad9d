// SPDX-License-Identifier: Apache-2.0
#include "fs/warm.h"

#include "catch_shim.h"
#include "temp_dir.h"

using namespace stoplog;
using namespace stoplog::fs;
using stoplog::test::TempDir;

TEST_CASE("a walk sees what is worth it and stays within") {
  TempDir dir;
  dir.write("a", "1");
  dir.mkdir("src");
  dir.write("src/b", "2");
  dir.mkdir("src/deep");
  dir.write("src/deep/c", "3");
  dir.mkdir("node_modules");
  dir.write("node_modules/d", "4");
  dir.mkdir(".git");
  dir.mkdir(".git/objects");
  dir.write(".git/objects/e", "5");
  std::filesystem::create_symlink("src", dir / "link");
  std::filesystem::create_symlink("/", dir / "out");
  auto done = warm(dir.path().string(), {.rest = false});
  REQUIRE(done);
  // The top, src, src/deep and .git; node_modules and objects by name alone.
  CHECK(done->directories == 4);
  CHECK(done->nodes == 10);
}

TEST_CASE("a walk ends at its number of nodes") {
  TempDir dir;
  for (int i = 0; i < 20; ++i) {
    std::string sub = "d" + std::to_string(i);
    dir.mkdir(sub);
    dir.write(sub + "/f", "x");
  }
  auto done = warm(dir.path().string(), {.nodes = 25, .rest = false});
  REQUIRE(done);
  CHECK(done->nodes == 25);
  CHECK(done->directories == 6);
  CHECK_FALSE(warm((dir / "absent").string(), {}));
}

TEST_CASE("a walk does not follow a path without end") {
  TempDir dir;
  std::string path;
  for (int i = 0; i < 12; ++i) {
    path += (path.empty() ? "" : "/") + std::string(200, 'd');
    dir.mkdir(path);
  }
  auto done = warm(dir.path().string(), {.rest = false});
  REQUIRE(done);
  CHECK(done->directories == 7);  // the sixth path has 1,205 bytes
}

TEST_CASE("what is left cold is known by its name") {
  CHECK(is_left_cold("", "node_modules"));
  CHECK(is_left_cold("a/b", "__pycache__"));
  CHECK(is_left_cold(".git", "objects"));
  CHECK(is_left_cold("sub/.git", "objects"));
  CHECK_FALSE(is_left_cold("", "objects"));
  CHECK_FALSE(is_left_cold("", "src"));
}
