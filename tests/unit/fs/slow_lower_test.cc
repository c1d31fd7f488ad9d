// SPDX-License-Identifier: Apache-2.0
// What takes long beneath, or hangs, is waited for by whom it concerns.
#include <fcntl.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <future>
#include <mutex>
#include <thread>

#include "base/sys_process.h"
#include "catch_shim.h"
#include "fs/closer.h"
#include "fs/one_each.h"
#include "fs/ruled_links.h"
#include "tree_fixture.h"

using namespace stoplog;
using namespace stoplog::fs;
using namespace stoplog::test;

namespace {

// Longer than anything here takes that does not hang.
constexpr std::chrono::seconds kPatience{60};

// Holds whoever comes by until it opens.
class Gate {
 public:
  ~Gate() { open(); }
  void pass() {
    std::unique_lock lock(mutex_);
    ++there_;
    changed_.notify_all();
    changed_.wait(lock, [&] { return open_; });
  }
  bool somebody_waits() {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, kPatience, [&] { return there_ > 0; });
  }
  void open() {
    std::lock_guard lock(mutex_);
    open_ = true;
    changed_.notify_all();
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  int there_ = 0;
  bool open_ = false;
};

// Rules whose answer for one directory takes its time.
struct SlowRules : PathRules {
  explicit SlowRules(Gate& g) : gate(g) {}
  bool empty() const override { return false; }
  bool hides() const override { return false; }
  Rule rule(std::string_view path, bool) const override {
    if (path == "slow") gate.pass();
    return path == "slow/masked" ? Rule::kMask : Rule::kNone;
  }
  Rule evaded(std::string_view, std::string_view) const override {
    return Rule::kNone;
  }
  std::string_view mask_content(std::string_view) const override { return ""; }
  Gate& gate;
};

bool is_there(std::future<int>& result) {
  return result.wait_for(kPatience) == std::future_status::ready;
}

}  // namespace

TEST_CASE("a first write to a file that hangs keeps none to another") {
  constexpr int kFiles = 64;
  TreeFixture f;
  Gate gate;
  // The first look is for its attributes, the second opens it.
  std::atomic<int> looks = -1000;
  f.options.base_shows = [&](std::string_view path) {
    if (path == "slow" && ++looks == 2) gate.pass();
    return Shown::kAll;
  };
  f.base.write("slow", "far");
  for (int i = 0; i < kFiles; ++i)
    f.base.write("f" + std::to_string(i), "near");
  f.open();
  const NodeId far = f.at("slow");
  std::vector<NodeId> near;
  for (int i = 0; i < kFiles; ++i)
    near.push_back(f.at("f" + std::to_string(i)));
  auto write = [&](NodeId id) {
    return f.err(f.tree->write(id, 0, std::as_bytes(std::span("x", 1)), {}));
  };
  looks = 0;
  auto hangs = std::async(std::launch::async, [&] { return write(far); });
  REQUIRE(gate.somebody_waits());
  auto others = std::async(std::launch::async, [&] {
    int failed = 0;
    for (NodeId id : near) failed += write(id) != 0;
    return failed;
  });
  CHECK(is_there(others));
  gate.open();
  CHECK(others.get() == 0);
  CHECK(hangs.get() == 0);
  CHECK(f.read("slow") == "xar");
}

TEST_CASE("of those with one number one goes on at a time") {
  OneEach all;
  std::atomic<int> inside = 0, most = 0;
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < 8; ++i)
      threads.emplace_back([&] {
        for (int n = 0; n < 200; ++n) {
          OneEach::Turn turn(all, 7);
          most = std::max<int>(most, ++inside);
          --inside;
        }
      });
  }
  CHECK(most == 1);
  OneEach::Turn mine(all, 1);
  OneEach::Turn another(all, 2);
}

TEST_CASE("a walk that takes long is not waited for when the mount ends") {
  TempDir base;
  base.mkdir("slow");
  base.write("file", "x");
  std::filesystem::create_hard_link(base / "file", base / "other");
  const sys::Stat st = sys::statat(base.fd(), "file").value();
  Gate gate;
  SlowRules rules(gate);
  RuledLinks links(base.fd(), rules);
  std::atomic<bool> killed = false;
  auto ask = [&](bool can_be_killed) {
    return std::async(std::launch::async, [&, can_be_killed] {
      auto rule = links.rule(st, Rule::kNone, [&, can_be_killed] {
        return can_be_killed && killed.load();
      });
      return rule ? 0 : rule.error().err();
    });
  };
  auto first = ask(true);
  REQUIRE(gate.somebody_waits());
  auto second = ask(false);
  killed = true;
  CHECK(is_there(first));
  CHECK(first.get() == EINTR);
  links.end();
  CHECK(is_there(second));
  CHECK(second.get() == EIO);
  // And who comes later.
  auto late = ask(false);
  CHECK(is_there(late));
  CHECK(late.get() == EIO);
  gate.open();
  CHECK(links.walks() == 1);
}

TEST_CASE("a question that was given up is answered for the next one") {
  TempDir base;
  base.mkdir("slow");
  base.write("slow/masked", "x");
  std::filesystem::create_hard_link(base / "slow/masked", base / "other");
  const sys::Stat st = sys::statat(base.fd(), "other").value();
  Gate gate;
  SlowRules rules(gate);
  RuledLinks links(base.fd(), rules);
  auto given_up = std::async(std::launch::async, [&] {
    auto rule = links.rule(st, Rule::kNone, [] { return true; });
    return rule ? 0 : rule.error().err();
  });
  CHECK(is_there(given_up));
  CHECK(given_up.get() == EINTR);
  gate.open();
  CHECK(links.rule(st, Rule::kNone) == Rule::kMask);
}

TEST_CASE("a descriptor of a file elsewhere is closed by nobody who waits") {
  Closer closer;
  sys::Pipe pipe = sys::pipe().value();
  const int number = pipe.write.get();
  {
    FdHandle kept = closer.keep(std::move(pipe.write));
    FdHandle more = kept;
    kept.reset();
    CHECK(::fcntl(number, F_GETFD) >= 0);
  }
  // Its closing is the end of the file for who reads.
  char byte = 0;
  CHECK(::read(pipe.read.get(), &byte, 1) == 0);
}
