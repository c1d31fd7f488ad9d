// SPDX-License-Identifier: Apache-2.0
#include "cli/progress_line.h"

#include <thread>

#include "base/sys_file.h"
#include "base/sys_process.h"
#include "catch_shim.h"
#include "cli/wait_line.h"

using namespace stoplog;
using namespace stoplog::cli;
using namespace std::chrono_literals;

namespace {

std::string drain(int fd) {
  char buffer[4096];
  ssize_t got = ::read(fd, buffer, sizeof buffer);
  return {buffer, got > 0 ? static_cast<size_t>(got) : 0};
}

}  // namespace

TEST_CASE("a progress line waits and is drawn now and then and goes away") {
  auto pipe = sys::pipe();
  REQUIRE(pipe);
  ManualClock clock;
  {
    ProgressLine line("comparing", pipe->write.get(), clock);
    line.update(1, 200);  // too early
    clock.advance(600ms);
    line.update(50, 200);
    clock.advance(10ms);
    line.update(51, 200);  // too soon after the last
    clock.advance(100ms);
    CHECK(line.callback()(100, 200));
  }
  CHECK(drain(pipe->read.get()) ==
        "\r\x1b[Kcomparing: 50 of 200 (25 %)"
        "\r\x1b[Kcomparing: 100 of 200 (50 %)\r\x1b[K");
}

TEST_CASE("short work draws no progress line and clears none") {
  auto pipe = sys::pipe();
  REQUIRE(pipe);
  ManualClock clock;
  {
    ProgressLine line("comparing", pipe->write.get(), clock);
    clock.advance(400ms);
    line.update(3, 4);
  }
  pipe->write.reset();
  CHECK(drain(pipe->read.get()).empty());
}

TEST_CASE("a wait line counts while something is waited for and goes away") {
  auto pipe = sys::pipe();
  REQUIRE(pipe);
  std::string drawn;
  {
    WaitLine line("rolling back", pipe->write.get(), 1ms);
    while (!drawn.contains("2 s")) drawn += drain(pipe->read.get());
    line.clear();
    drawn += drain(pipe->read.get());
  }
  CHECK(
      drawn.starts_with("\r\x1b[Krolling back: 1 s\r\x1b[Krolling back: 2 s"));
  CHECK(drawn.ends_with("\r\x1b[K"));
}

TEST_CASE("nothing is drawn for what is not waited for") {
  auto pipe = sys::pipe();
  REQUIRE(pipe);
  {
    WaitLine line("rolling back", pipe->write.get(), 10min);
  }
  {
    WaitLine nowhere("rolling back", -1, 1ms);
  }
  pipe->write.reset();
  CHECK(drain(pipe->read.get()).empty());
}
