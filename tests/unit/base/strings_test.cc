// SPDX-License-Identifier: Apache-2.0
#include "base/strings.h"

#include "catch_shim.h"

using namespace stoplog;

TEST_CASE("split keeps empty parts") {
  CHECK(split("a,,b", ',') == std::vector<std::string_view>{"a", "", "b"});
  CHECK(split("", ',') == std::vector<std::string_view>{""});
}

TEST_CASE("trim takes blanks from both ends") {
  CHECK(trim(" \ta b\r\n") == "a b");
  CHECK(trim(" ").empty());
}

TEST_CASE("base64 pads as RFC 4648 says") {
  CHECK(base64("").empty());
  CHECK(base64("f") == "Zg==");
  CHECK(base64("fo") == "Zm8=");
  CHECK(base64("foo") == "Zm9v");
  CHECK(base64("\xff\xfe") == "//4=");
}

TEST_CASE("nearest finds the word that was meant and no other") {
  std::vector<std::string_view> words = {"status", "diff", "commit", "review"};
  CHECK(nearest("statsu", words) == "status");
  CHECK(nearest("dif", words) == "diff");
  CHECK(nearest("comit", words) == "commit");
  CHECK(nearest("stat", words) == "status");
  CHECK(nearest("com", words) == "commit");
  CHECK(nearest("co", words).empty());
  CHECK(nearest("zebra", words).empty());
}
