// SPDX-License-Identifier: Apache-2.0
#include "base/clock.h"

#include "catch_shim.h"

using namespace stoplog;
using namespace std::chrono_literals;

TEST_CASE("a manual clock moves only when told") {
  ManualClock clock({1'700'000'000, 5});
  CHECK(clock.now().tv_sec == 1'700'000'000);
  clock.advance(1500ms);
  CHECK(clock.now().tv_sec == 1'700'000'001);
  CHECK(clock.now().tv_nsec == 500'000'005);
  CHECK(clock.steady() == 1500ms);
  clock.set_now({10, 0});
  CHECK(clock.now().tv_sec == 10);
  CHECK(clock.steady() == 1500ms);
}

TEST_CASE("the real steady clock does not go back") {
  auto first = Clock::real().steady();
  CHECK(Clock::real().steady() >= first);
  CHECK(Clock::real().now().tv_sec > 1'700'000'000);
}

TEST_CASE("RFC 3339 times are printed in UTC and read back") {
  timespec time{1'794'812'400, 123'456'789};
  CHECK(rfc3339(time) == "2026-11-16T07:00:00.123Z");
  CHECK(rfc3339({0, 0}) == "1970-01-01T00:00:00.000Z");
  CHECK(parse_rfc3339(rfc3339(time))->tv_sec == time.tv_sec);
  CHECK(parse_rfc3339("2026-11-16T07:00:00.5Z")->tv_nsec == 500'000'000);
  CHECK(parse_rfc3339("2026-11-16T08:00:00+01:00")->tv_sec == time.tv_sec);
  CHECK(parse_rfc3339("2026-11-16T05:30:00-01:30")->tv_sec == time.tv_sec);
  for (const char* bad :
       {"", "2026-11-16", "2026-11-16T07:00:00", "2026-13-16T07:00:00Z",
        "2026-11-16T24:00:00Z", "2026-11-16T07:00:00.Z",
        "2026-11-16T07:00:00Zx", "2026-11-16T07:00:00+1:00"})
    CHECK_FALSE(parse_rfc3339(bad));
}
