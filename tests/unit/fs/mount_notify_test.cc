// SPDX-License-Identifier: Apache-2.0
#include "fs/mount_notify.h"

#include <atomic>
#include <limits>
#include <thread>

#include "catch_shim.h"
#include "fs/watch.h"

using namespace stoplog::fs;

namespace {

struct Kernel {
  std::mutex mutex;
  std::vector<std::string> told;
  std::atomic<uint64_t> busy{std::numeric_limits<uint64_t>::max()};
  std::atomic<uint64_t> clock{1};

  Notifier::Options options() {
    Notifier::Options out;
    out.send = [this](const Invalidation& what) {
      std::lock_guard lock(mutex);
      told.push_back(what.name);
    };
    out.tick = [this] { return clock.fetch_add(1); };
    out.oldest_busy = [this] { return busy.load(); };
    return out;
  }
  size_t count() {
    std::lock_guard lock(mutex);
    return told.size();
  }
};

Invalidation named(std::string name) {
  return {.kind = Invalidation::Kind::kExpire, .node = 1, .name = name};
}

}  // namespace

TEST_CASE("what is pushed is told once when nothing is in flight") {
  Kernel kernel;
  Notifier notifier(kernel.options());
  notifier.start();
  std::vector<Invalidation> what{named("a"), named("b")};
  notifier.push(what);
  REQUIRE(notifier.drain(20000));
  CHECK(kernel.told == std::vector<std::string>{"a", "b"});
}

TEST_CASE("what is told while an older request runs is told once more after") {
  Kernel kernel;
  kernel.busy = 1;
  Notifier notifier(kernel.options());
  notifier.start();
  Invalidation what = named("a");
  notifier.push(std::span(&what, 1));
  CHECK_FALSE(notifier.drain(50));
  CHECK(kernel.count() == 1);
  kernel.busy = std::numeric_limits<uint64_t>::max();
  REQUIRE(notifier.drain(20000));
  CHECK(kernel.count() == 2);
}

TEST_CASE("what is queued at the end is still told") {
  Kernel kernel;
  Notifier notifier(kernel.options());
  std::vector<Invalidation> what(100, named("x"));
  notifier.push(what);
  notifier.start();
  notifier.stop();
  CHECK(kernel.count() == 100);
}

// The kernel waits for a page that a hung file is to fill. What was pushed with
// it, or comes after it, cannot wait for that.
TEST_CASE("notifications that hang delay no other") {
  constexpr size_t kHung = 20;
  Kernel kernel;
  std::atomic<bool> hangs{true};
  Notifier::Options options = kernel.options();
  auto tell = options.send;
  options.send = [&](const Invalidation& what) {
    while (what.name == "hung" && hangs)
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
    tell(what);
  };
  Notifier notifier(std::move(options));
  notifier.start();
  std::vector<Invalidation> what(kHung, named("hung"));
  what.push_back(named("a"));
  notifier.push(what);
  CHECK_FALSE(notifier.drain(50));
  for (int i = 0; i < 2000 && kernel.count() < 1; ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  CHECK(kernel.count() == 1);
  Invalidation later = named("b");
  notifier.push(std::span(&later, 1));
  for (int i = 0; i < 2000 && kernel.count() < 2; ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  hangs = false;
  REQUIRE(notifier.drain(20000));
  REQUIRE(kernel.count() == kHung + 2);
  CHECK(kernel.told[0] == "a");
  CHECK(kernel.told[1] == "b");
}

TEST_CASE("only file systems known to report changes are trusted") {
  CHECK(reports_changes(0xEF53));            // ext4
  CHECK(reports_changes(0x01021994));        // tmpfs
  CHECK_FALSE(reports_changes(0x6969));      // nfs
  CHECK_FALSE(reports_changes(0x65735546));  // fuse
}
