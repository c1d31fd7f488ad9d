// SPDX-License-Identifier: Apache-2.0
// The one way to Catch2: v2 (Debian 12) and v3 behind the same include.
// Use TEST_CASE, SECTION, REQUIRE, CHECK, INFO, GENERATE, Catch::Approx.
#pragma once
#if __has_include(<catch2/catch_all.hpp>)
#define STOPLOG_CATCH_V3 1
#include <catch2/catch_all.hpp>
#else
#define STOPLOG_CATCH_V3 0
#ifdef STOPLOG_CATCH_MAIN
#define CATCH_CONFIG_MAIN
#endif
#include <catch2/catch.hpp>
#endif
