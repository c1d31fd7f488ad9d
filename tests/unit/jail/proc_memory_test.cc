// SPDX-License-Identifier: Apache-2.0
#include "jail/proc_memory.h"

#include <sys/mman.h>
#include <unistd.h>

#include "base/fd.h"
#include "catch_shim.h"
#include "jail/proc_tree.h"

using namespace stoplog;
using namespace stoplog::jail;

TEST_CASE("memory that is shared with a file is not a process's own") {
  const std::string rollup =
      "0-1 ---p 0 00:00 0 [rollup]\nRss: 400 kB\nPss: 300 kB\n"
      "Pss_Anon: 100 kB\nPss_File: 50 kB\nPss_Shmem: 150 kB\n";
  const std::string maps =
      "1-2 rw-s 0 00:01 7 /memfd:x (deleted)\nSize: 9 kB\nPss: 110 kB\n"
      "3-4 rw-s 0 00:01 8 /dev/zero (deleted)\nSize: 9 kB\nPss: 40 kB\n";
  CHECK(own_memory_of(rollup, maps) == (150 + 40) * 1024);
  // Too many mappings to look at: all of it.
  CHECK(own_memory_of(rollup, "") == 300 * 1024);
}

TEST_CASE("a memory file counts once for all who have it open") {
  Fd file(::memfd_create("test", MFD_CLOEXEC));
  REQUIRE(::ftruncate(file.get(), 8 << 20) == 0);
  const std::string block(1 << 20, 'x');
  const auto before = MemoryFiles().measure({::getpid()});
  REQUIRE(::write(file.get(), block.data(), block.size()) == 1 << 20);
  Fd again(::dup(file.get()));
  MemoryFiles files;
  CHECK(files.measure({::getpid(), ::getpid()}) == before + (1 << 20));
}

TEST_CASE("a process that is gone keeps its time") {
  ProcessTimes times;
  times.see(5, 100, 30);
  times.see(5, 100, 50);
  times.see(6, 100, 7);
  CHECK(times.total_us() == 57);
  times.see(5, 200, 4);
  CHECK(times.total_us() == 61);
}
