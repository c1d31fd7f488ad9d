// SPDX-License-Identifier: Apache-2.0
#include "base/json.h"

#include "catch_shim.h"

using stoplog::Json;

TEST_CASE("Json writes what it parses") {
  const char* texts[] = {"null",
                         "true",
                         "[]",
                         "{}",
                         R"({"a":1,"b":[1,-2,3.5,"x"],"c":{"d":null}})",
                         R"("\"\\\n\t\u0001\u007f é 漢")",
                         "[-0.0,1.0,-30.0,1e+300]",
                         "18446744073709551615",
                         "-9223372036854775808"};
  for (const char* text : texts) {
    INFO(text);
    auto parsed = Json::parse(text);
    REQUIRE(parsed);
    CHECK(parsed->dump() == text);
    CHECK(Json::parse(parsed->pretty()).value() == *parsed);
  }
  CHECK(Json::parse(R"("\ud83d\ude00")")->string() == "\xF0\x9F\x98\x80");
}

TEST_CASE("Json refuses what is not JSON") {
  const char* bad[] = {"",         "{",
                       "[1,]",     "{\"a\":1,}",
                       "01",       "+1",
                       "nul",      "\"a",
                       "\"\\x\"",  "\"\\ud800\"",
                       "\"\xff\"", "[1] 2",
                       "\"\n\"",   "{\"a\":1,\"a\":2}",
                       "inf",      "nan",
                       "{1:2}",    "\"\\u12\"",
                       "-",        "1e"};
  for (const char* text : bad) {
    INFO(text);
    CHECK_FALSE(Json::parse(text));
  }
  CHECK_FALSE(Json::parse(std::string(100000, '[')));
}

TEST_CASE("Json replaces bytes that are not UTF-8 when writing") {
  CHECK(Json(std::string("a\xff")).dump() == "\"a\xEF\xBF\xBD\"");
}

TEST_CASE("Json escapes what a terminal obeys or nobody sees") {
  std::string odd = "a\u009b31m \u0085 \u202e \u200b \u2028 \U000e0041 \x7f é";
  std::string text = Json(odd).dump();
  CHECK(text ==
        R"("a\u009b31m \u0085 \u202e \u200b \u2028 \udb40\udc41 \u007f é")");
  CHECK(Json::parse(text)->string() == odd);
}

TEST_CASE("Json getters give the default for another kind") {
  Json j = Json::object();
  j.set("s", "text").set("n", 5u).set("b", true).set("s", "again");
  CHECK(j.text("s") == "again");
  CHECK(j.integer("s", 7) == 7);
  CHECK(j.integer("n") == 5);
  CHECK(j.boolean("b"));
  CHECK(j["absent"].is_null());
  CHECK(j.erase("b"));
  CHECK(j.dump() == R"({"s":"again","n":5})");
  CHECK(Json(5u) == Json(5));
}
