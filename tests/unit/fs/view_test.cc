// SPDX-License-Identifier: Apache-2.0
#include "fs/view.h"

#include "catch_shim.h"
#include "temp_dir.h"

using namespace stoplog;
using namespace stoplog::fs;
using stoplog::test::TempDir;
namespace stdfs = std::filesystem;

namespace {

RelPath at(std::string_view text) { return *RelPath::parse(text); }

std::string text_of(const NodeState& state) {
  std::string text(state.size, '\0');
  auto n = state.content->read(0, std::as_writable_bytes(std::span(text)));
  REQUIRE(n);
  text.resize(*n);
  return text;
}

std::map<std::string, RawChange> by_path(const View& view) {
  auto list = view.changes();
  REQUIRE(list);
  std::map<std::string, RawChange> map;
  for (RawChange& change : *list) map[change.path.str()] = std::move(change);
  return map;
}

}  // namespace

TEST_CASE("the state of a path beneath a directory is read without following") {
  TempDir dir;
  dir.write("file", "hello");
  stdfs::create_symlink("/etc", dir / "out");
  ::mkfifo((dir / "pipe").c_str(), 0640);
  auto file = *state_beneath(dir.fd(), at("file"));
  REQUIRE(file);
  CHECK(text_of(*file) == "hello");
  auto link = *state_beneath(dir.fd(), at("out"));
  REQUIRE(link);
  CHECK(link->type == Type::kSymlink);
  CHECK(link->target == "/etc");
  CHECK_FALSE(*state_beneath(dir.fd(), at("out/passwd")));
  CHECK((*state_beneath(dir.fd(), at("pipe")))->type == Type::kFifo);
  CHECK_FALSE(*state_beneath(dir.fd(), at("none/at/all")));
  auto names = *list_beneath(dir.fd(), RelPath());
  REQUIRE(names.size() == 3);
  CHECK(names[0].name == "file");
  CHECK(names[2].type == Type::kFifo);
}

TEST_CASE("content that changed in the real tree is drift and never mixed") {
  TempDir dir;
  dir.write("file", "hello");
  auto state = *state_beneath(dir.fd(), at("file"));
  std::byte out[8];
  SECTION("replaced") {
    dir.write("other", "HELLO");
    stdfs::rename(dir / "other", dir / "file");
  }
  SECTION("written in place") { dir.write("file", "HELLO!"); }
  SECTION("gone") { stdfs::remove(dir / "file"); }
  auto n = state->content->read(0, out);
  REQUIRE_FALSE(n);
  CHECK(n.error().code() == Code::kDrift);
  CHECK(n.error().err() == EIO);
}

TEST_CASE("a path deeper than PATH_MAX is reached") {
  TempDir dir;
  std::string name(200, 'd'), path;
  Fd fd(::openat(dir.fd(), ".", O_RDONLY | O_DIRECTORY));
  for (int i = 0; i < 40; ++i) {
    REQUIRE(::mkdirat(fd.get(), name.c_str(), 0755) == 0);
    fd = Fd(::openat(fd.get(), name.c_str(), O_RDONLY | O_DIRECTORY));
    path += (i ? "/" : "") + name;
  }
  auto state = state_beneath(dir.fd(), at(path));
  REQUIRE(state);
  REQUIRE(*state);
  CHECK((*state)->type == Type::kDir);
}

TEST_CASE("two directories compared give the changed paths alone") {
  TempDir old_dir, new_dir;
  for (TempDir* dir : {&old_dir, &new_dir}) {
    dir->mkdir("same");
    dir->mkdir("gone");
  }
  old_dir.write("same/kept", "x");
  stdfs::copy_file(old_dir / "same/kept", new_dir / "same/kept");
  stdfs::last_write_time(new_dir / "same/kept",
                         stdfs::last_write_time(old_dir / "same/kept"));
  stdfs::remove(new_dir / "gone");
  old_dir.write("gone/a", "a");
  old_dir.write("text", "old");
  new_dir.write("text", "new!");
  new_dir.write("added", "1");
  auto changes = by_path(*view_of_directories(old_dir.fd(), new_dir.fd()));
  CHECK(changes.size() == 4);
  CHECK(changes.contains("gone"));
  CHECK_FALSE(changes["gone/a"].after);
  CHECK(text_of(*changes["text"].before) == "old");
  CHECK(text_of(*changes["text"].after) == "new!");
  CHECK_FALSE(changes["added"].before);
}

TEST_CASE("a moved directory is one change and carries what is beneath") {
  TempDir old_dir, new_dir;
  old_dir.mkdir("a/deep");
  old_dir.write("a/same", "same");
  old_dir.write("a/edit", "1");
  old_dir.write("a/deep/gone", "2");
  stdfs::copy(old_dir / "a", new_dir / "b", stdfs::copy_options::recursive);
  for (const char* name : {"same", "edit"})
    stdfs::last_write_time(
        new_dir / ("b/" + std::string(name)),
        stdfs::last_write_time(old_dir / ("a/" + std::string(name))));
  new_dir.write("b/edit", "22");
  stdfs::remove(new_dir / "b/deep/gone");
  auto changes =
      by_path(*view_of_directories(old_dir.fd(), new_dir.fd(), {{"b", "a"}}));
  CHECK(changes.size() == 3);
  CHECK(changes["b"].from == at("a"));
  CHECK(changes["b/edit"].from == at("a/edit"));
  CHECK(changes["a/deep/gone"].before);
  CHECK_FALSE(changes["a/deep/gone"].after);
}

TEST_CASE("a directory replaced by a file is a change and deletes beneath") {
  TempDir old_dir, new_dir;
  old_dir.mkdir("x");
  old_dir.write("x/in", "1");
  new_dir.write("x", "now a file");
  auto changes = by_path(*view_of_directories(old_dir.fd(), new_dir.fd()));
  CHECK(changes.size() == 2);
  CHECK(changes["x"].before->type == Type::kDir);
  CHECK(changes["x"].after->type == Type::kFile);
  CHECK_FALSE(changes["x/in"].after);
}
