// SPDX-License-Identifier: Apache-2.0
#include "fs/warm.h"

#include <sys/stat.h>

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

TEST_CASE("small files are read, large ones and what is no file are not") {
  TempDir dir;
  dir.write("a", std::string(1000, 'a'));
  dir.mkdir("src");
  dir.write("src/b", std::string(2000, 'b'));
  dir.write("src/empty", "");
  dir.write("large", std::string(5000, 'l'));
  dir.mkdir("build");
  dir.write("build/c", std::string(500, 'c'));
  std::filesystem::create_symlink("a", dir / "link");
  REQUIRE(::mkfifo((dir / "fifo").c_str(), 0600) == 0);  // and does not hang
  auto done = warm(dir.path().string(),
                   {.bytes = 100'000, .largest = 4096, .rest = false});
  REQUIRE(done);
  CHECK(done->bytes == 3000);
  CHECK(done->nodes == 8);  // counted once

  auto names = warm(dir.path().string(), {.rest = false});
  REQUIRE(names);
  CHECK(names->bytes == 0);
  auto few = warm(dir.path().string(), {.bytes = 2500, .rest = false});
  REQUIRE(few);
  CHECK(few->bytes == 1000);  // the second one would be too much
}

TEST_CASE("what is left cold is known by its name") {
  CHECK(is_left_cold("", "node_modules"));
  CHECK(is_left_cold("a/b", "__pycache__"));
  CHECK(is_left_cold(".git", "objects"));
  CHECK(is_left_cold("sub/.git", "objects"));
  CHECK_FALSE(is_left_cold("", "objects"));
  CHECK_FALSE(is_left_cold("", "src"));
}
