// SPDX-License-Identifier: Apache-2.0
// Segments: who syncs waits for the disk, and what comes after lost bytes goes
// elsewhere.
#include "fs/segments.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <semaphore>
#include <thread>

#include "catch_shim.h"
#include "fs/layout.h"
#include "tree_fixture.h"

using namespace stoplog;
using namespace stoplog::fs;
using namespace stoplog::test;
namespace stdfs = std::filesystem;

namespace {

// Of every fdatasync of this program.
std::atomic<int> synced = 0;
std::atomic<bool> is_stopped = false;  // the next one waits for `go_on`
std::atomic<int> fails_with = 0;       // and fails once with this
std::binary_semaphore entered{0}, go_on{0};

std::string segment(const TreeFixture& f, uint32_t number) {
  return f.draft / layout::kSegmentDir / layout::segment_name(number);
}

}  // namespace

// In place of libc's, for all of this program.
extern "C" int fdatasync(int fd) {
  ++synced;
  if (is_stopped.exchange(false)) {
    entered.release();
    go_on.acquire();
  }
  if (int error = fails_with.exchange(0); error != 0) {
    errno = error;
    return -1;
  }
  return static_cast<int>(::syscall(SYS_fdatasync, fd));
}

TEST_CASE("who syncs while another one does waits for its end and its error") {
  const int error = GENERATE(0, EIO);
  TempDir dir;
  auto segments = Segments::open(dir.fd(), true).value();
  const std::string text(5000, 'x');
  for (int i = 0; i < 2; ++i) {
    SegmentRange range = segments->allocate(text.size()).value();
    REQUIRE(segments->write(range, std::as_bytes(std::span(text))));
  }
  is_stopped = true;
  fails_with = error;
  Status first, second;
  std::atomic<bool> is_done = false;
  std::thread one([&] { first = segments->sync(); });
  entered.acquire();
  std::thread two([&] {
    second = segments->sync();
    is_done = true;
  });
  // Long enough for one that does not wait; one that does cannot be done.
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  CHECK_FALSE(is_done);
  go_on.release();
  one.join();
  two.join();
  CHECK(first.has_value() == (error == 0));
  CHECK(second.has_value() == (error == 0));
  CHECK(segments->sync());
}

TEST_CASE("nothing comes to segments that are sealed but what is claimed") {
  TempDir dir;
  auto segments = Segments::open(dir.fd(), true).value();
  Segments::Claim before, after;
  SegmentRange old = segments->allocate(100, {}, &before).value();
  const uint32_t last = segments->seal_all();
  CHECK(old.segment <= last);
  auto claimed = segments->claimed();
  REQUIRE(claimed.size() == 1);
  CHECK(claimed[0].at == old.at);
  CHECK(segments->allocate(100, {}, &after).value().segment > last);
}

TEST_CASE("what is written after a loss of power shows in no older file") {
  TreeFixture f;
  f.open();
  const std::string text(9000, 'o');
  f.create("older", text);
  f.tree.reset();
  stdfs::resize_file(segment(f, 1), GENERATE(0, 4096));
  f.open();
  f.create("newer", std::string(9000, 'n'));
  CHECK(f.read("older").find('n') == std::string::npos);
  CHECK(f.read("older").size() == text.size());
  CHECK(f.read("newer") == std::string(9000, 'n'));
  // Also once both are hashed and read again.
  REQUIRE(f.tree->mark(MarkKind::kNamed, 0, "both"));
  REQUIRE(f.tree->settle());
  f.reopen();
  CHECK(f.read("older").find('n') == std::string::npos);
  CHECK(f.read("newer") == std::string(9000, 'n'));
}

TEST_CASE("a next daemon goes on in the segment of the last one") {
  TreeFixture f;
  f.open();
  for (const char* name : {"a", "b", "c"}) {
    f.create(name, "text");
    f.reopen();
  }
  CHECK(stdfs::exists(segment(f, 1)));
  CHECK_FALSE(stdfs::exists(segment(f, 2)));
}

TEST_CASE("the copy of a sparse real file is not written into at its end") {
  TreeFixture f;
  f.options.take_whole = 4096;
  f.base.write("sparse", std::string(20000, 's'));
  stdfs::resize_file(f.base / "sparse", 200000);
  f.open();
  f.write("sparse", "x");
  REQUIRE(f.tree->settle());
  f.reopen();
  f.create("newer", std::string(50000, 'n'));
  CHECK(f.read("sparse").find('n') == std::string::npos);
}

TEST_CASE("what is sealed or pinned is on the disk before its record") {
  TreeFixture f;
  f.options.take_whole = 4096;
  f.base.write("large", std::string(100000, 'l'));
  f.open();
  REQUIRE(f.tree->fsync());
  SECTION("sealed") {
    f.create("new", std::string(9000, 'n'));
    REQUIRE(f.tree->mark(MarkKind::kNamed, 0, "one"));
  }
  SECTION("pinned") { f.write("large", "x"); }
  synced = 0;
  REQUIRE(f.tree->settle());
  CHECK(synced >= 1);
  // With nothing new there is nothing to wait for.
  REQUIRE(f.tree->mark(MarkKind::kNamed, 0, "two"));
  REQUIRE(f.tree->settle());
  synced = 0;
  REQUIRE(f.tree->settle());
  CHECK(synced == 0);
}
