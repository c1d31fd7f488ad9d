// SPDX-License-Identifier: Apache-2.0
#include "catch_shim.h"
#include "fs/rules.h"

using namespace stoplog;
using namespace stoplog::fs;

TEST_CASE("a rule on a directory holds for all beneath it") {
  auto rules = RuleSet::create({.hide = {"secrets"},
                                .read_only = {"vendor/"},
                                .deny = {"*.sqlite"},
                                .default_masks = false})
                   .value();
  CHECK(rules->rule("secrets", true) == Rule::kHide);
  CHECK(rules->rule("secrets/a/b", false) == Rule::kHide);
  CHECK(rules->rule("vendor/x.c", false) == Rule::kReadOnly);
  CHECK(rules->rule("src/db.sqlite", false) == Rule::kDeny);
  CHECK(rules->rule("src/db.c", false) == Rule::kNone);
  CHECK(rules->rule("", true) == Rule::kNone);
}

TEST_CASE("sets of rules asked in turn keep to themselves") {
  auto one = RuleSet::create({.hide = {"a/b"}, .default_masks = false}).value();
  auto two = RuleSet::create({.deny = {"a/"}, .default_masks = false}).value();
  CHECK(one->hides());
  CHECK_FALSE(two->hides());
  for (int i = 0; i < 2; ++i) {
    CHECK(one->rule("a/b/c", false) == Rule::kHide);
    CHECK(two->rule("a/b/c", false) == Rule::kDeny);
    CHECK(one->rule("a/c", false) == Rule::kNone);
    CHECK(one->rule("a/b", true) == Rule::kHide);
    CHECK(two->rule("a", false) == Rule::kNone);
    CHECK(two->rule("a", true) == Rule::kDeny);
    CHECK(one->rule("b/c", false) == Rule::kNone);
    CHECK(two->rule("b/c", false) == Rule::kNone);
  }
}

TEST_CASE("the strictest rule holds whatever the order") {
  auto rules = RuleSet::create({.hide = {"a/b"},
                                .mask = {"a/b"},
                                .read_only = {"a"},
                                .deny = {"a/*"},
                                .default_masks = false})
                   .value();
  CHECK(rules->rule("a", true) == Rule::kReadOnly);
  CHECK(rules->rule("a/c", false) == Rule::kDeny);
  CHECK(rules->rule("a/b", false) == Rule::kHide);
}

TEST_CASE("a rule that the move of a directory would go round") {
  auto rules = RuleSet::create({.hide = {"*.key"},
                                .mask = {"m/x"},
                                .read_only = {"ci/*.yml", "src/**/lock"},
                                .deny = {"**/private/db"},
                                .default_masks = false})
                   .value();
  CHECK(rules->evaded("new", "ci") == Rule::kReadOnly);
  CHECK(rules->evaded("ci", "old") == Rule::kReadOnly);
  CHECK(rules->evaded("new", "other") == Rule::kNone);
  CHECK(rules->evaded("new", "m") == Rule::kNone);
  CHECK(rules->evaded("lib", "src") == Rule::kReadOnly);
  CHECK(rules->evaded("lib", "src/lib") == Rule::kReadOnly);
  CHECK(rules->evaded("src/a", "src/b") == Rule::kNone);
  CHECK(rules->evaded("src/a", "b") == Rule::kReadOnly);
  CHECK(rules->evaded("a/b", "a/private") == Rule::kDeny);
  CHECK(rules->evaded("a/private", "private") == Rule::kNone);
}

TEST_CASE("secrets that git does not track are masked by default") {
  auto tracked = [](std::string_view path) { return path == "test/ca.pem"; };
  auto rules = RuleSet::create({.tracked = tracked}).value();
  CHECK_FALSE(rules->empty());
  for (const char* secret :
       {".env", "app/.env.local", "id_rsa", "deploy/ID_ED25519", "tls/a.pem",
        "tls/A.KEY", ".netrc", "x.kdbx"}) {
    INFO(secret);
    CHECK(rules->rule(secret, false) == Rule::kMask);
  }
  for (const char* open : {"test/ca.pem", "env", ".envrc", "id_rsa.pub", ".pem",
                           "src/key.c", ".env.d/x"}) {
    INFO(open);
    CHECK(rules->rule(open, false) == Rule::kNone);
  }
  CHECK(rules->rule(".env", true) == Rule::kNone);
  CHECK_FALSE(rules->mask_content(".env").empty());
}

TEST_CASE("a default mask does not weaken a stricter rule") {
  auto rules = RuleSet::create({.hide = {".env"}, .read_only = {"*"}}).value();
  CHECK(rules->rule(".env", false) == Rule::kHide);
  CHECK(rules->rule("a.pem", false) == Rule::kMask);
  CHECK(rules->rule("a.c", false) == Rule::kReadOnly);
}

TEST_CASE("a pattern that is none is refused and no rules are empty") {
  CHECK_FALSE(RuleSet::create({.hide = {"[a"}}).has_value());
  CHECK(RuleSet::create({.default_masks = false}).value()->empty());
}
