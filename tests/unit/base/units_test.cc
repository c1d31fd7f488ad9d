// SPDX-License-Identifier: Apache-2.0
#include "base/units.h"

#include "catch_shim.h"

using namespace stoplog;
using namespace std::chrono_literals;

TEST_CASE("sizes are read in powers of 1024") {
  CHECK(parse_size("0").value() == 0);
  CHECK(parse_size("512").value() == 512);
  CHECK(parse_size("512M").value() == 512ULL << 20);
  CHECK(parse_size("2g").value() == 2ULL << 30);
  CHECK(parse_size("2GiB").value() == 2ULL << 30);
  CHECK(parse_size("2KB").value() == 2048);
  CHECK(parse_size("1.5K").value() == 1024 + 5 * 102);
  CHECK(parse_size("18446744073709551615").value() == UINT64_MAX);
  for (const char* bad :
       {"", "M", "-1", "+1", " 1", "1 ", "1Z", "1KK", "1.5", "1.55G", "1.G",
        "0x10", "18446744073709551616", "16384P", "1Bi", "1e3"})
    CHECK_FALSE(parse_size(bad));
}

TEST_CASE("sizes are printed short and exactly") {
  CHECK(print_size(0) == "0B");
  CHECK(print_size(1023) == "1023B");
  CHECK(print_size(1024) == "1K");
  CHECK(print_size(1536) == "1.5K");
  CHECK(print_size((1ULL << 20) - 1) == "1M");
  CHECK(print_size(1023ULL << 10) == "1023K");
  CHECK(print_size(UINT64_MAX) == "16384P");
  for (uint64_t n : {0ULL, 1ULL, 1000ULL, 1024ULL, 1536ULL, 5ULL << 30,
                     (1ULL << 40) + 1, ~0ULL})
    CHECK(parse_size(print_size_exact(n)).value() == n);
  CHECK(print_size_exact(512ULL << 20) == "512M");
}

TEST_CASE("durations are read as sums of units in falling order") {
  CHECK(parse_duration("90s").value() == 90s);
  CHECK(parse_duration("10m").value() == 10min);
  CHECK(parse_duration("1h30m").value() == 90min);
  CHECK(parse_duration("500ms").value() == 500ms);
  CHECK(parse_duration("1m500ms").value() == 60500ms);
  CHECK(parse_duration("1d").value() == 24h);
  CHECK(parse_duration("0s").value() == 0s);
  for (const char* bad :
       {"", "90", "s", "1s1m", "1m1m", "-1s", "1 s", "1.5h", "1h30", "1w",
        "99999999999999999999s", "9223372036854775807d"})
    CHECK_FALSE(parse_duration(bad));
}

TEST_CASE("durations are printed in their two largest units") {
  CHECK(print_duration(0ms) == "0ms");
  CHECK(print_duration(500ms) == "500ms");
  CHECK(print_duration(12s) == "12s");
  CHECK(print_duration(12345ms) == "12.3s");
  CHECK(print_duration(90s) == "1m30s");
  CHECK(print_duration(60s) == "1m");
  CHECK(print_duration(90min) == "1h30m");
  CHECK(print_duration(52h) == "2d4h");
  CHECK(print_duration(-90s) == "-1m30s");
  for (Millis d : {0ms, 1ms, 999ms, 61'001ms, 90'061'001ms})
    CHECK(parse_duration(print_duration_exact(d)).value() == d);
}
