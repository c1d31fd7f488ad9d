// SPDX-License-Identifier: Apache-2.0
#include "draft/policy.h"

#include "fixture.h"

using namespace stoplog;
using namespace stoplog::draft;

namespace {

Result<Policy> policy_of(std::optional<std::string> user,
                         std::optional<std::string> workspace,
                         std::string_view preset = "") {
  PolicyFiles files;
  if (user) files.user = TRY(parse_toml(*user, "config.toml"));
  if (workspace) files.workspace = TRY(parse_toml(*workspace, ".stoplog.toml"));
  return make_policy(files, preset);
}

}  // namespace

TEST_CASE("the user's file sets and says where") {
  auto p = policy_of(
      "[limits]\ntime = \"30m\"\nmemory = \"2G\"\npids = 512\n"
      "[files]\nhide = [\"secrets/**\"]\n"
      "[gate]\nmax_age = \"24h\"\n",
      {});
  REQUIRE(p);
  CHECK(p->limits.time.value == 1'800'000);
  CHECK(p->limits.time.origin == "config.toml:2:8");
  CHECK(p->limits.memory.value == uint64_t{2} << 30);
  CHECK(p->limits.pids.value == 512);
  CHECK(p->hide.value == std::vector<std::string>{"secrets/**"});
  CHECK(p->max_age.value == 86'400'000);
  CHECK(p->limits.inodes.origin == "default");
  CHECK(p->warnings.empty());
}

TEST_CASE("a workspace's file only tightens") {
  std::string user =
      "[limits]\ntime = \"10m\"\npids = 100\n"
      "[network]\nallow = [\"a.example\", \"b.example:443\"]\n"
      "[env]\npass = [\"A\", \"B\"]\n"
      "[files]\nhide = [\"x\"]\n[gate]\nignored = \"hold\"\n";
  auto p = policy_of(user,
                     "[limits]\ntime = \"1h\"\npids = 50\ncpu = \"1m\"\n"
                     "[network]\nallow = [\"a.example\", \"evil.example\"]\n"
                     "[env]\npass = [\"B\", \"SECRET\"]\n"
                     "[files]\nhide = [\"y\"]\n"
                     "[gate]\nignored = \"commit\"\nmode = \"hold\"\n");
  REQUIRE(p);
  CHECK(p->limits.time.value == 600'000);
  CHECK(p->limits.pids.value == 50);
  CHECK(p->limits.cpu.value == 60'000);
  CHECK(p->allow.value == std::vector<std::string>{"a.example"});
  CHECK(p->env_pass.value == std::vector<std::string>{"B"});
  CHECK(p->hide.value == std::vector<std::string>{"x", "y"});
  CHECK(p->ignored.value == "hold");
  CHECK(p->gate_mode.value == "hold");
  CHECK(p->warnings.size() == 4);
  // Without a list of the user's, a workspace opens nothing.
  auto none = policy_of({}, "[network]\nallow = [\"evil.example\"]\n");
  CHECK(none->net.value == NetMode::kNone);
  CHECK(none->allow.value.empty());
  auto unbound =
      policy_of("[limits]\npids = \"none\"\n", "[limits]\nmemory = \"none\"\n");
  CHECK_FALSE(unbound->limits.pids.value);
  CHECK(unbound->limits.memory.value);
}

TEST_CASE("errors of a policy name line and column") {
  CHECK(policy_of("[limits]\ntime = 5\n", {}).error().text() ==
        "config.toml:2:8: limits.time must be a duration such as \"30m\", or "
        "\"none\"");
  CHECK(policy_of("[limits\n", {})
            .error()
            .text()
            .starts_with("config.toml:1:8: "));
  CHECK(policy_of("[files]\nhide = [\"a\", 1]\n", {})
            .error()
            .text()
            .starts_with("config.toml:2:8: files.hide"));
  CHECK(policy_of("limits = 3\n", {}).error().text() ==
        "config.toml:1:10: limits must be a table");
  CHECK_FALSE(policy_of("[network]\nallow = [\"a b\"]\n", {}));
  CHECK_FALSE(policy_of("[limits]\npids = -1\n", {}));
  auto typo = policy_of("[limits]\ntiem = \"5m\"\n[x]\ny = 1\n", {});
  REQUIRE(typo);
  REQUIRE(typo->warnings.size() == 2);
  CHECK(typo->warnings[0] ==
        "config.toml:2:8: unknown key limits.tiem is ignored (did you mean "
        "limits.time?)");
}

TEST_CASE("presets come between the user's file and the workspace's") {
  std::string user =
      "[limits]\ntime = \"1h\"\n[preset.mine.limits]\ntime = \"2h\"\n";
  CHECK(policy_of(user, {})->limits.time.value == 3'600'000);
  CHECK(policy_of(user, {}, "mine")->limits.time.value == 7'200'000);
  CHECK(policy_of(user, {}, "strict")->limits.time.value == 600'000);
  auto unknown = policy_of(user, {}, "strikt");
  CHECK(unknown.error().code() == Code::kUsage);
  CHECK(unknown.error().hint() == "did you mean 'strict'?");
  auto tight = policy_of(user, "[limits]\ntime = \"5m\"\n", "mine");
  CHECK(tight->limits.time.value == 300'000);
}

TEST_CASE("the digest follows the values and not their origin") {
  std::string a = policy_of("[limits]\npids = 5\n", {})->digest();
  CHECK(a == policy_of("\n\n[limits]\npids = 5\n", {})->digest());
  CHECK(a == policy_of({}, "[limits]\npids = 5\n")->digest());
  CHECK(a != policy_of("[limits]\npids = 6\n", {})->digest());
}

TEST_CASE("net rules follow a strict grammar") {
  CHECK(parse_net_rule("a.example")->port == 0);
  CHECK(parse_net_rule("a.example:8080")->port == 8080);
  CHECK(parse_net_rule("[::1]:80")->host == "::1");
  for (const char* bad : {"", ":80", "a:", "a:0", "a:99999", "a b", "-a.b",
                          "a..b", "a/b", "a:80:90", "[::1", "*.a", "a.b."})
    CHECK_FALSE(parse_net_rule(bad));
}

TEST_CASE("a workspace's policy behind a symlink is refused") {
  Place place;
  place.write("evil.toml", "[limits]\npids = 5\n");
  REQUIRE(::symlink("../evil.toml",
                    (place.top + "/ws/.stoplog.toml").c_str()) == 0);
  Workspace ws = place.workspace();
  CHECK_FALSE(read_policy_files(place.layout, &ws));
  REQUIRE(::unlink((place.top + "/ws/.stoplog.toml").c_str()) == 0);
  place.write("ws/.stoplog.toml", "[limits]\npids = 5\n");
  auto files = read_policy_files(place.layout, &ws);
  REQUIRE(files);
  CHECK(make_policy(*files, "")->limits.pids.value == 5);
}

TEST_CASE("a limit may be required and a workspace may require more") {
  auto p = policy_of("[limits]\nmemory = \"1G\"\nrequired = [\"memory\"]\n",
                     "[limits]\nrequired = [\"pids\", \"memory\"]\n");
  REQUIRE(p);
  CHECK(p->required.value == std::vector<std::string>{"memory", "pids"});
  auto fewer = policy_of("[limits]\nrequired = [\"memory\"]\n",
                         "[limits]\nrequired = []\n");
  REQUIRE(fewer);
  CHECK(fewer->required.value == std::vector<std::string>{"memory"});
  auto unknown = policy_of("[limits]\nrequired = [\"luck\"]\n", {});
  CHECK((!unknown || !unknown->warnings.empty()));
}
