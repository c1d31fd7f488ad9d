// SPDX-License-Identifier: Apache-2.0
// A file whose other name has a rule: that one need not have been looked up.
#include "fs/ruled_links.h"

#include <chrono>
#include <thread>

#include "base/sys_node.h"
#include "catch_shim.h"
#include "fs/rules.h"
#include "tree_fixture.h"

using namespace stoplog;
using namespace stoplog::fs;
using namespace stoplog::test;
namespace stdfs = std::filesystem;

namespace {

std::unique_ptr<RuleSet> some_rules() {
  return RuleSet::create({.hide = {"hidden"}, .read_only = {"ro/"}}).value();
}

// So that what changed before counts as changed before what comes.
// And a little more, in case the clock is set back a little meanwhile.
void next_tick() {
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  const timespec now = sys::coarse_now();
  while (same_time(now, sys::coarse_now())) std::this_thread::yield();
}

void link(TreeFixture& f, const char* from, const char* to) {
  stdfs::create_hard_link(f.base / from, f.base / to);
}

void make_base(TreeFixture& f) {
  for (const char* dir : {"app/deep", "ro", "hidden", "plain"})
    f.base.mkdir(dir);
  f.base.write("app/deep/.env", "SECRET");
  f.base.write("ro/file", "kept");
  f.base.write("hidden/key.pem", "h");
  f.base.write("plain/twin", "twin");
  link(f, "app/deep/.env", "plain/a");
  link(f, "ro/file", "plain/b");
  link(f, "hidden/key.pem", "plain/c");
  link(f, "plain/twin", "plain/twin2");
}

}  // namespace

TEST_CASE("a masked file is masked by a name that no rule speaks of") {
  auto rules = some_rules();
  const std::string mask(rules->mask_content(""));
  TreeFixture f;
  make_base(f);
  f.options.rules = rules.get();
  f.open();
  CHECK(f.read("plain/a") == mask);
  CHECK(f.attr("plain/a").size == mask.size());
  CHECK(f.write("plain/a", "x") == EACCES);
  CHECK(f.read("plain/c") == "h");  // hidden names lead nowhere
  CHECK(f.read("plain/twin2") == "twin");
  CHECK(f.write("plain/twin2", "T") == 0);
  CHECK(f.read("plain/twin") == "Twin");
  f.reopen();
  CHECK(f.read("plain/a") == mask);
}

TEST_CASE("a read-only file is not changed by a name that no rule speaks of") {
  auto rules = some_rules();
  TreeFixture f;
  make_base(f);
  f.options.rules = rules.get();
  f.open();
  SECTION("its content") { CHECK(f.write("plain/b", "x") == EROFS); }
  SECTION("its size") { CHECK(f.truncate("plain/b", 0) == EROFS); }
  SECTION("its mode") {
    CHECK(f.err(f.tree->setattr(f.at("plain/b"), {.set = kSetMode, .mode = 0},
                                f.caller)) == EROFS);
  }
  SECTION("its attributes") {
    CHECK(f.err(f.tree->setxattr(f.at("plain/b"), "user.k", "v", 0,
                                 f.caller)) == EROFS);
  }
  SECTION("after it was read and moved") {
    CHECK(f.read("plain/b") == "kept");
    CHECK(f.rename("plain/b", "plain/moved") == EROFS);
    CHECK(f.write("plain/b", "x") == EROFS);
  }
  SECTION("after it was moved") {
    CHECK(f.rename("plain/b", "plain/moved") == 0);
    CHECK(f.write("plain/moved", "x") == EROFS);
    f.reopen();
    CHECK(f.write("plain/moved", "x") == EROFS);
  }
  CHECK(f.read("ro/file") == "kept");
}

TEST_CASE("a name that a masked file was given later is masked as well") {
  auto rules = some_rules();
  const std::string mask(rules->mask_content(""));
  TreeFixture f;
  make_base(f);
  f.base.write("app/other.key", "SECRET");
  f.options.rules = rules.get();
  f.open();
  next_tick();
  CHECK(f.read("plain/twin") == "twin");
  link(f, "app/other.key", "plain/late");
  CHECK(f.read("plain/late") == mask);
  // And one that is masked only from now on.
  link(f, "plain/twin2", "plain/twin.pem");
  f.forget_all();
  f.reopen();
  CHECK(f.read("plain/twin2") == mask);
}

TEST_CASE("one walk tells of all files whose names were there before it") {
  auto rules = some_rules();
  TreeFixture f;
  make_base(f);
  for (int i = 0; i < 50; ++i) {
    f.base.write("plain/x" + std::to_string(i), "x");
    stdfs::create_hard_link(f.base / ("plain/x" + std::to_string(i)),
                            f.base / ("plain/y" + std::to_string(i)));
  }
  next_tick();
  RuledLinks links(f.base.fd(), *rules);
  auto stat = [&](const std::string& path) {
    return sys::statat(f.base.fd(), path).value();
  };
  for (int i = 0; i < 50; ++i)
    CHECK(links.rule(stat("plain/y" + std::to_string(i)), Rule::kNone) ==
          Rule::kNone);
  CHECK(links.rule(stat("plain/a"), Rule::kNone) == Rule::kMask);
  CHECK(links.rule(stat("plain/b"), Rule::kNone) == Rule::kReadOnly);
  CHECK(links.rule(stat("plain/c"), Rule::kNone) == Rule::kNone);
  CHECK(links.walks() == 1);
  next_tick();
  link(f, "plain/twin", "plain/third");
  CHECK(links.rule(stat("plain/third"), Rule::kNone) == Rule::kNone);
  CHECK(links.walks() == 2);
  CHECK(links.rule(stat("plain/x1"), Rule::kNone) == Rule::kNone);
  CHECK(links.walks() == 2);
}

TEST_CASE("all who ask while a walk is under way wait for the same") {
  auto rules = some_rules();
  TreeFixture f;
  make_base(f);
  for (int i = 0; i < 200; ++i) f.base.mkdir("app/d" + std::to_string(i));
  next_tick();
  RuledLinks links(f.base.fd(), *rules);
  const sys::Stat st = sys::statat(f.base.fd(), "plain/a").value();
  std::atomic<int> masked = 0;
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < 8; ++i)
      threads.emplace_back([&] {
        auto rule = links.rule(st, Rule::kNone);
        if (rule && *rule == Rule::kMask) ++masked;
      });
  }
  CHECK(masked == 8);
  CHECK(links.walks() == 1);
}
