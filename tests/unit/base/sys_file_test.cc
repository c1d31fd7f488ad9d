// SPDX-License-Identifier: Apache-2.0
#include "base/sys_file.h"

#include <linux/fs.h>
#include <sys/file.h>

#include <array>

#include "catch_shim.h"
#include "scratch.h"

using namespace stoplog;

namespace {

Fd open_file(const Scratch& scratch, const char* name, int flags = O_RDWR) {
  return sys::openat(scratch.fd(), name, flags | O_CREAT, 0600).value();
}

int open_error(const Scratch& scratch, std::string_view path) {
  auto fd = sys::open_beneath(scratch.fd(), path, O_RDONLY);
  return fd ? 0 : fd.error().err();
}

}  // namespace

TEST_CASE("open_beneath opens what lies beneath and nothing else") {
  Scratch scratch;
  REQUIRE(sys::mkdirat(scratch.fd(), "a", 0700));
  Fd a = sys::openat(scratch.fd(), "a", O_RDONLY | O_DIRECTORY).value();
  REQUIRE(write_file(a.get(), "in", "inside", 0600, Sync::kNo));
  REQUIRE(sys::symlinkat("a", scratch.fd(), "link"));
  REQUIRE(sys::symlinkat("/etc/passwd", scratch.fd(), "out"));
  REQUIRE(sys::symlinkat("../../../../etc", a.get(), "up"));
  CHECK(open_error(scratch, "a/in") == 0);
  CHECK(open_error(scratch, "") == 0);
  CHECK(open_error(scratch, ".") == 0);
  CHECK(open_error(scratch, "link/in") == ELOOP);
  CHECK(open_error(scratch, "out") == ELOOP);
  CHECK(open_error(scratch, "a/up/passwd") == ELOOP);
  CHECK(open_error(scratch, "..") == EXDEV);
  CHECK(open_error(scratch, "a/../../x") == EXDEV);
  CHECK(open_error(scratch, "/etc/passwd") == EXDEV);
  CHECK(open_error(scratch, "absent") == ENOENT);
  Fd made = sys::open_beneath(scratch.fd(), "a/new", O_CREAT | O_WRONLY, 0640)
                .value();
  CHECK((sys::fstat(made.get())->mode & 0777) == 0640);
}

TEST_CASE("openat neither follows a symlink nor leaks into a child") {
  Scratch scratch;
  REQUIRE(sys::symlinkat("/etc/passwd", scratch.fd(), "link"));
  CHECK(sys::openat(scratch.fd(), "link", O_RDONLY).error().err() == ELOOP);
  Fd fd = open_file(scratch, "x");
  CHECK((::fcntl(fd.get(), F_GETFD) & FD_CLOEXEC) != 0);
  CHECK((::fcntl(sys::dup(fd.get())->get(), F_GETFD) & FD_CLOEXEC) != 0);
}

TEST_CASE("whole-buffer reads and writes") {
  Scratch scratch;
  Fd fd = open_file(scratch, "x");
  std::string text = "0123456789";
  REQUIRE(sys::pwrite_full(fd.get(), std::as_bytes(std::span(text)), 5));
  std::array<std::byte, 32> out{};
  CHECK(sys::pread_full(fd.get(), out, 0).value() == 15);
  CHECK(sys::pread_full(fd.get(), out, 100).value() == 0);
  CHECK(sys::read_file(scratch.fd(), "x", 15)->substr(5) == text);
  CHECK(sys::read_file(scratch.fd(), "x", 14).error().err() == EFBIG);
}

TEST_CASE("rename flags replace neither silently nor by half") {
  Scratch scratch;
  REQUIRE(write_file(scratch.fd(), "a", "A", 0600, Sync::kNo));
  REQUIRE(write_file(scratch.fd(), "b", "B", 0600, Sync::kNo));
  int dir = scratch.fd();
  CHECK(sys::renameat2(dir, "a", dir, "b", RENAME_NOREPLACE).error().err() ==
        EEXIST);
  REQUIRE(sys::renameat2(dir, "a", dir, "b", RENAME_EXCHANGE));
  CHECK(sys::read_file(dir, "a", 10).value() == "B");
  CHECK(sys::read_file(dir, "b", 10).value() == "A");
}

TEST_CASE("links of any length and attributes are read back") {
  Scratch scratch;
  std::string target(3000, 't');
  REQUIRE(sys::symlinkat(target, scratch.fd(), "link"));
  CHECK(sys::readlinkat(scratch.fd(), "link").value() == target);
  Fd fd = open_file(scratch, "x");
  REQUIRE(sys::futimens(fd.get(), {5, 6}, {7, 8}));
  sys::Stat stat = sys::fstat(fd.get()).value();
  CHECK(stat.mtime.tv_sec == 7);
  CHECK(stat.mtime.tv_nsec == 8);
  CHECK(stat.ino == sys::statat(scratch.fd(), "x")->ino);
  CHECK(S_ISLNK(sys::statat(scratch.fd(), "link")->mode));
}

TEST_CASE("extended attributes of any size are read back") {
  Scratch scratch;
  Fd fd = open_file(scratch, "x");
  std::string value(1500, 'v');
  auto set = sys::fsetxattr(fd.get(), "user.long", value);
  if (!set && set.error().err() == EOPNOTSUPP) {
    WARN("no user xattrs beneath $TMPDIR");
    return;
  }
  REQUIRE(set);
  REQUIRE(sys::fsetxattr(fd.get(), "user.empty", ""));
  CHECK(sys::fgetxattr(fd.get(), "user.long").value() == value);
  CHECK(sys::fgetxattr(fd.get(), "user.empty")->empty());
  CHECK(sys::flistxattr(fd.get())->size() >= 2);
  REQUIRE(sys::fremovexattr(fd.get(), "user.long"));
  CHECK(sys::fgetxattr(fd.get(), "user.long").error().err() == ENODATA);
}

TEST_CASE("copy_file_range copies between offsets and stops at the end") {
  Scratch scratch;
  Fd from = open_file(scratch, "from");
  Fd to = open_file(scratch, "to");
  REQUIRE(sys::write_full(from.get(), std::string_view("0123456789")));
  CHECK(sys::copy_file_range(from.get(), 2, to.get(), 1, 100).value() == 8);
  CHECK(sys::copy_file_range(from.get(), 10, to.get(), 0, 100).value() == 0);
  CHECK(sys::read_file(scratch.fd(), "to", 100).value() ==
        std::string("\0", 1) + "23456789");
}

TEST_CASE("a lock that is held is not taken twice") {
  Scratch scratch;
  Fd one = open_file(scratch, "lock");
  Fd two = open_file(scratch, "lock");
  REQUIRE(sys::flock(one.get(), LOCK_EX));
  CHECK(sys::flock(two.get(), LOCK_EX | LOCK_NB).error().err() == EWOULDBLOCK);
  one.reset();
  CHECK(sys::flock(two.get(), LOCK_EX | LOCK_NB));
}

TEST_CASE("reopen gives a description with an offset of its own") {
  Scratch scratch;
  Fd fd = open_file(scratch, "x");
  REQUIRE(sys::write_full(fd.get(), std::string_view("abc")));
  Fd again = sys::reopen(fd.get(), O_RDONLY).value();
  CHECK(sys::read_all(again.get(), 10).value() == "abc");
  CHECK(sys::read_all(fd.get(), 10)->empty());
}
