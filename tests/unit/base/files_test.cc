// SPDX-License-Identifier: Apache-2.0
// Dir, TempFile, Mmap and remove_tree, in a directory of their own.
#include <sys/stat.h>
#include <unistd.h>

#include <set>

#include "base/dir.h"
#include "base/mmap.h"
#include "base/sys_file.h"
#include "base/temp_file.h"
#include "catch_shim.h"
#include "scratch.h"

using namespace stoplog;

namespace {

bool exists(int dir, const std::string& name) {
  return sys::statat(dir, name).has_value();
}

}  // namespace

TEST_CASE("Dir gives every name once and neither dot nor dot-dot") {
  Scratch scratch;
  std::set<std::string> made;
  for (int i = 0; i < 2000; ++i) {
    std::string name = fmt::format("a rather long file name {}", i);
    made.insert(name);
    REQUIRE(sys::mknodat(scratch.fd(), name, S_IFREG | 0600, 0));
  }
  Dir dir = Dir::open(scratch.fd(), ".").value();
  for (int pass = 0; pass < 2; ++pass) {
    std::set<std::string> seen;
    while (const Dir::Entry* entry = dir.next().value()) {
      CHECK(seen.emplace(entry->name).second);
      CHECK(entry->ino != 0);
    }
    CHECK(seen == made);
    REQUIRE(dir.rewind());
  }
  CHECK(list_names(scratch.fd(), ".")->size() == made.size());
}

TEST_CASE("Dir does not follow a symlink") {
  Scratch scratch;
  REQUIRE(sys::symlinkat("/", scratch.fd(), "link"));
  CHECK_FALSE(Dir::open(scratch.fd(), "link"));
}

TEST_CASE("TempFile appears whole at commit and vanishes without one") {
  Scratch scratch;
  {
    TempFile file = TempFile::create(scratch.fd(), 0640).value();
    REQUIRE(sys::write_full(file.fd(), std::string_view("half")));
    CHECK(exists(scratch.fd(), file.temp_name()));
    TempFile moved = std::move(file);
    CHECK(exists(scratch.fd(), moved.temp_name()));
  }
  CHECK(list_names(scratch.fd(), ".")->empty());
  REQUIRE(write_file(scratch.fd(), "x", "one"));
  REQUIRE(write_file(scratch.fd(), "x", "two"));
  CHECK(sys::read_file(scratch.fd(), "x", 100).value() == "two");
  CHECK((sys::statat(scratch.fd(), "x")->mode & 0777) == 0600);
  TempFile file = TempFile::create(scratch.fd(), 0600).value();
  auto refused = file.commit("x", Replace::kNo);
  REQUIRE_FALSE(refused);
  CHECK(refused.error().err() == EEXIST);
  REQUIRE(file.commit("y", Replace::kNo, Sync::kNo));
  CHECK(*list_names(scratch.fd(), ".") == std::vector<std::string>{"x", "y"});
}

TEST_CASE("Mmap shows a file and takes an empty one") {
  Scratch scratch;
  REQUIRE(write_file(scratch.fd(), "x", "content", 0600, Sync::kNo));
  REQUIRE(write_file(scratch.fd(), "empty", "", 0600, Sync::kNo));
  Fd x = sys::openat(scratch.fd(), "x", O_RDWR).value();
  Mmap map = Mmap::map_file(x.get()).value();
  CHECK(map.text() == "content");
  Mmap writable = Mmap::map(x.get(), 7, Mmap::Access::kWrite).value();
  writable.writable()[0] = std::byte{'C'};
  CHECK(map.text() == "Content");
  Fd empty = sys::openat(scratch.fd(), "empty", O_RDONLY).value();
  CHECK(Mmap::map_file(empty.get())->size() == 0);
}

TEST_CASE("remove_tree removes all beneath and nothing else") {
  Scratch scratch;
  REQUIRE(sys::mkdirat(scratch.fd(), "keep", 0700));
  REQUIRE(write_file(scratch.fd(), "file", "", 0600, Sync::kNo));
  REQUIRE(sys::mkdirat(scratch.fd(), "gone", 0700));
  Fd gone = sys::openat(scratch.fd(), "gone", O_RDONLY | O_DIRECTORY).value();
  REQUIRE(sys::symlinkat("../keep", gone.get(), "link"));
  for (int i = 0; i < 1500; ++i)
    REQUIRE(sys::mknodat(gone.get(), fmt::format("f{}", i), S_IFREG, 0));
  REQUIRE(sys::mkdirat(gone.get(), "closed", 0));
  REQUIRE(remove_tree(scratch.fd(), "gone"));
  REQUIRE(remove_tree(scratch.fd(), "absent"));
  REQUIRE(remove_tree(scratch.fd(), "file"));
  CHECK(*list_names(scratch.fd(), ".") == std::vector<std::string>{"keep"});
}

TEST_CASE("remove_tree takes a tree deeper than PATH_MAX") {
  Scratch scratch;
  Fd at = sys::dup(scratch.fd()).value();
  std::string name(200, 'd');
  for (int i = 0; i < 300; ++i) {
    REQUIRE(sys::mkdirat(at.get(), name, 0700));
    at = sys::openat(at.get(), name, O_RDONLY | O_DIRECTORY).value();
  }
  at.reset();
  REQUIRE(remove_tree(scratch.fd(), name));
  CHECK(list_names(scratch.fd(), ".")->empty());
}
