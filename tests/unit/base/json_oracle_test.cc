// SPDX-License-Identifier: Apache-2.0
// Our parser of JSON against nlohmann-json's: what one takes the other takes,
// for the same value. Ours refuses more: keys that appear twice, depth, a byte
// order mark, what follows a NUL.
#include <nlohmann/json.hpp>
#include <random>

#include "base/json.h"
#include "catch_shim.h"

using namespace stoplog;

namespace {

class Maker {
 public:
  explicit Maker(unsigned seed) : random_(seed) {}

  std::string text() {
    std::string out = value(0);
    for (size_t spoilt = below(3); spoilt > 0; spoilt--) spoil(out);
    return out;
  }

 private:
  size_t below(size_t n) { return random_() % n; }
  std::string pick(std::initializer_list<const char*> of) {
    return of.begin()[below(of.size())];
  }
  std::string space() { return pick({"", "", "", " ", "\n", "\t \r"}); }

  std::string string() {
    std::string out = "\"";
    for (size_t n = below(4); n > 0; n--)
      out += pick({"a",
                   "key",
                   "é",
                   "漢",
                   "😀",
                   "\\n",
                   "\\/",
                   "\\\"",
                   "\\\\",
                   "\\u00e9",
                   "\\ud83d\\ude00",
                   "\\ud83d",
                   "\\ude00",
                   "\\u0000",
                   "\x7f",
                   "\xc0\x80",
                   "\xed\xa0\x80",
                   "\xff",
                   "\x01",
                   "\\x",
                   "\\uD83D\\u0041",
                   "\\b\\f\\r\\t"});
    return out + "\"";
  }
  std::string number() {
    return pick({"0",
                 "-0",
                 "7",
                 "-12",
                 "1.5",
                 "-0.0",
                 "1e5",
                 "1E-5",
                 "2e+3",
                 "01",
                 "1.",
                 ".5",
                 "-",
                 "1e",
                 "9223372036854775807",
                 "9223372036854775808",
                 "-9223372036854775808",
                 "-9223372036854775809",
                 "18446744073709551615",
                 "18446744073709551616",
                 "1e400",
                 "-1e400",
                 "1e-400",
                 "4.9e-324",
                 "0.1"});
  }
  std::string value(int depth) {
    switch (below(depth > 4 ? 3 : 5)) {
      case 0:
        return string();
      case 1:
        return number();
      case 2:
        return pick({"true", "false", "null", "nul", "True"});
      case 3: {
        std::string out = "[" + space();
        for (size_t n = below(4); n > 0; n--)
          out += value(depth + 1) + space() + (n > 1 ? "," : "") + space();
        return out + "]";
      }
      default: {
        std::string out = "{" + space();
        for (size_t n = below(4); n > 0; n--)
          out += string() + space() + ":" + space() + value(depth + 1) +
                 space() + (n > 1 ? "," : "") + space();
        return out + "}";
      }
    }
  }
  void spoil(std::string& text) {
    if (text.empty()) return;
    size_t at = below(text.size());
    std::string by = pick({"", "", ",", "]", "}", "\"", ":", "0", "-", "\\",
                           " ", "x", "\xe2", "."});
    text.replace(at, below(2), by);
  }

  std::mt19937 random_;
};

}  // namespace

TEST_CASE("Json takes what another parser takes and means the same") {
  size_t taken = 0, refused = 0;
  for (unsigned seed = 0; seed < 40000; seed++) {
    std::string text = Maker(seed).text();
    INFO(seed << ": " << text);
    auto theirs = nlohmann::json::parse(text, nullptr, false);
    auto ours = Json::parse(text);
    if (!ours && ours.error().text().find("appears twice") != std::string::npos)
      continue;
    REQUIRE(ours.has_value() == !theirs.is_discarded());
    (ours ? taken : refused)++;
    if (ours) REQUIRE(nlohmann::json::parse(ours->dump()) == theirs);
  }
  CHECK(taken > 5000);
  CHECK(refused > 5000);
}

TEST_CASE("Json refuses what another parser lets pass") {
  CHECK_FALSE(Json::parse("\xEF\xBB\xBF{}"));
  CHECK_FALSE(Json::parse(std::string_view("{}\0x", 4)));
  CHECK_FALSE(Json::parse(R"({"a":1,"b":2,"a":1})"));
  auto where = Json::parse("{\"a\": 1,\n \"b\" 2}");
  REQUIRE_FALSE(where);
  CHECK(where.error().text() == "not JSON at byte 15");
  std::string deep(64, '[');
  CHECK(Json::parse(deep + std::string(64, ']')));
  CHECK_FALSE(Json::parse("[" + deep + std::string(65, ']')));
}
