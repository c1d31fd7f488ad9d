// SPDX-License-Identifier: Apache-2.0
#include "base/sys_processors.h"

#include <sched.h>

#include <thread>

#include "catch_shim.h"

using namespace stoplog;

TEST_CASE("lists of processors are read and nothing else is") {
  using List = std::vector<uint16_t>;
  CHECK(sys::parse_processors("0\n") == List{0});
  CHECK(sys::parse_processors("0-3,8,10-11\n") == List{0, 1, 2, 3, 8, 10, 11});
  for (const char* text : {"", "\n", "x", "3-1", "1,", "1,,2", "2,1", "1-",
                           "0-99999", "-1", "1 2"}) {
    INFO(text);
    CHECK(sys::parse_processors(text).empty());
  }
}

TEST_CASE("a thread is bound to a processor that is there") {
  auto there = sys::processors();
  REQUIRE(there.has_value());
  CHECK(there->possible >= there->online.size());
  std::thread([&] {
    CHECK(sys::bind_thread(there->online.back()).has_value());
    CHECK(::sched_getcpu() == there->online.back());
    CHECK(sys::bind_thread(8000).error().err() == EINVAL);
  }).join();
}
