// SPDX-License-Identifier: Apache-2.0
#include "cli/args.h"

#include "catch_shim.h"

using namespace stoplog;
using namespace stoplog::cli;

namespace {

constexpr OptionSpec kOptions[] = {{"json"},
                                   {"all", 'a'},
                                   {"yes", 'y'},
                                   {"context", 'U', "N"},
                                   {"env", 0, "NAME", true}};

Result<Args> parse(std::vector<std::string> words, bool follows = false) {
  return parse_args(words, {.command = "x",
                            .options = kOptions,
                            .command_follows = follows,
                            .min = 0,
                            .max = 9});
}

}  // namespace

TEST_CASE("options are taken in every usual form") {
  Args a = parse({"p", "--json", "-U3", "--env", "A=1", "--env=B", "-ay", "q"})
               .value();
  CHECK(a.positionals == std::vector<std::string>{"p", "q"});
  CHECK(a.has("json"));
  CHECK(a.has("all"));
  CHECK(a.has("yes"));
  CHECK(a.value("context") == "3");
  CHECK(a.values("env") == std::vector<std::string>{"A=1", "B"});
  CHECK(parse({"-U", "4", "--context=5"})->value("context") == "5");
  CHECK(parse({"--context="})->value("context") == "");
  CHECK(parse({"-"})->positionals == std::vector<std::string>{"-"});
}

TEST_CASE("a command that follows keeps its own options") {
  Args a = parse({"--json", "make", "--all", "-j4"}, true).value();
  CHECK(a.positionals == std::vector<std::string>{"make", "--all", "-j4"});
  CHECK_FALSE(a.has("all"));
  Args b = parse({"--", "--json"}).value();
  CHECK(b.positionals == std::vector<std::string>{"--json"});
  CHECK(b.double_dash);
}

TEST_CASE("a mistyped option is told which was meant") {
  auto bad = parse({"--jsno"});
  REQUIRE_FALSE(bad);
  CHECK(bad.error().code() == Code::kUsage);
  CHECK(bad.error().hint() == "did you mean '--json'?");
  CHECK_FALSE(parse({"-z"}));
  CHECK_FALSE(parse({"-U"}));
  CHECK_FALSE(parse({"--json=1"}));
  CHECK_FALSE(parse({"-az"}));
}

TEST_CASE("the number of arguments is checked") {
  std::vector<std::string> none;
  std::vector<std::string> two = {"a", "b"};
  CHECK_FALSE(parse_args(none, {.command = "x", .options = {}, .min = 1}));
  CHECK_FALSE(
      parse_args(two, {.command = "x", .options = {}, .min = 0, .max = 1}));
}

TEST_CASE("numbers are whole and within bounds") {
  CHECK(parse_number("17", "-n", 1, 20).value() == 17);
  for (const char* bad :
       {"", "x", "1x", "-1", "0", "21", " 1", "99999999999999999999"})
    CHECK_FALSE(parse_number(bad, "-n", 1, 20));
}
