// SPDX-License-Identifier: Apache-2.0
// The readers, with a pipe of packets in the place of /dev/fuse.
#include "fs/mount_pool.h"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <map>
#include <string>

#include "catch_shim.h"

using namespace stoplog;
using namespace stoplog::fs;

namespace {

class Device {
 public:
  Device() {
    int ends[2];
    REQUIRE(::pipe2(ends, O_CLOEXEC | O_DIRECT) == 0);
    out = Fd(ends[0]);
    in = Fd(ends[1]);
    polled = Fd(::open(("/proc/self/fd/" + std::to_string(ends[0])).c_str(),
                       O_RDONLY | O_NONBLOCK | O_CLOEXEC));
    REQUIRE(polled);
  }
  void ask(char what) { REQUIRE(::write(in.get(), &what, 1) == 1); }
  void abort() { in.reset(); }

  Fd out, in, polled;
};

// Serves requests of one byte: a capital letter hangs until it is let go.
class Server {
 public:
  ReaderPool::Options options(const Device& device, bool polled) {
    ReaderPool::Options out;
    out.device = device.out.get();
    out.polled = polled ? device.polled.get() : -1;
    out.buffer = 4096;
    out.is_large = [](std::span<const std::byte> bytes) {
      return bytes[0] == std::byte{'l'};
    };
    out.serve = [this](const ReaderPool::Request& request) { serve(request); };
    return out;
  }

  void wait_for(char what, int count = 1) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return begun_[what] >= count; });
  }
  void let_go() {
    std::lock_guard lock(mutex_);
    free_ = true;
    changed_.notify_all();
  }
  // Devices that requests were told to be from.
  std::map<int, int> devices() {
    std::lock_guard lock(mutex_);
    return devices_;
  }

 private:
  void serve(const ReaderPool::Request& request) {
    char what = static_cast<char>(request.bytes[0]);
    std::unique_lock lock(mutex_);
    ++begun_[what];
    ++devices_[request.device];
    changed_.notify_all();
    if (what == 'd') {  // as from a disk
      lock.unlock();
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
      return;
    }
    if (what >= 'A' && what <= 'Z') changed_.wait(lock, [&] { return free_; });
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<char, int> begun_;
  std::map<int, int> devices_;
  bool free_ = false;
};

void wait_until_threads(const ReaderPool& pool, int most) {
  while (pool.threads() > most)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

}  // namespace

TEST_CASE("requests that hang leave the others a reader") {
  bool polled = GENERATE(false, true);
  Device device;
  Server server;
  ReaderPool pool(server.options(device, polled));
  REQUIRE(pool.start());
  for (char hanging : {'A', 'B', 'C', 'D', 'E'}) {
    device.ask(hanging);
    server.wait_for(hanging);
  }
  device.ask('x');
  server.wait_for('x');
  CHECK(pool.threads() >= 6);
  server.let_go();
  // One reads, one dozes; a third may be on its way while requests come.
  for (int i = 1; pool.threads() > 3; ++i) {
    device.ask('y');
    server.wait_for('y', i);
  }
  pool.stop();
  CHECK(pool.threads() == 0);
}

TEST_CASE("a request that computes for long leaves the others a reader") {
  Device device;
  Server server;
  auto options = server.options(device, true);
  std::atomic<bool> ends{false};
  options.serve = [&, plain = options.serve](const auto& request) {
    bool computes = request.bytes[0] == std::byte{'c'};
    plain(request);
    while (computes && !ends) continue;
  };
  ReaderPool pool(std::move(options));
  REQUIRE(pool.start());
  device.ask('c');
  server.wait_for('c');
  device.ask('x');
  server.wait_for('x');
  ends = true;
}

TEST_CASE("readers hang no more than their number allows") {
  Device device;
  Server server;
  auto options = server.options(device, false);
  options.most = 3;
  ReaderPool pool(std::move(options));
  REQUIRE(pool.start());
  for (char hanging : {'A', 'B', 'C'}) {
    device.ask(hanging);
    server.wait_for(hanging);
  }
  device.ask('x');  // waits in the device
  CHECK(pool.threads() == 3);
  server.let_go();
  server.wait_for('x');
}

TEST_CASE("requests that wait for a disk are served side by side") {
  Device device;
  Server server;
  ReaderPool pool(server.options(device, true));
  REQUIRE(pool.start());
  int asked = 0;
  while (pool.threads() < 7) {  // six that read and one that dozes
    for (int i = 0; i < 16; ++i) device.ask('d');
    asked += 16;
    server.wait_for('d', asked - 8);
  }
  server.wait_for('d', asked);
  // Small ones send them home again.
  for (int i = 1; pool.threads() > 3; ++i) {
    device.ask('y');
    server.wait_for('y', i);
  }
}

TEST_CASE("an answer goes to the device that asked") {
  Device device;
  Server server;
  ReaderPool pool(server.options(device, true));
  REQUIRE(pool.start());
  for (int i = 1; i <= 200; ++i) {
    device.ask(i % 50 == 0 ? 'l' : 's');
    server.wait_for(i % 50 == 0 ? 'l' : 's', 1);
  }
  server.wait_for('s', 196);
  server.wait_for('l', 4);
  pool.stop();
  int total = 0;
  for (auto [from, count] : server.devices()) {
    CHECK((from == device.out.get() || from == device.polled.get()));
    total += count;
  }
  CHECK(total == 200);
}

TEST_CASE("a connection that ends says so and ends the readers") {
  bool polled = GENERATE(false, true);
  Device device;
  Server server;
  ReaderPool pool(server.options(device, polled));
  REQUIRE(pool.start());
  device.ask('x');
  server.wait_for('x');
  CHECK_FALSE(pool.has_ended());
  device.abort();
  pollfd ended{.fd = pool.ended_fd(), .events = POLLIN, .revents = 0};
  REQUIRE(::poll(&ended, 1, -1) == 1);
  CHECK(pool.has_ended());
  wait_until_threads(pool, 0);
}

TEST_CASE("the oldest request being served is known") {
  Device device;
  Server server;
  ReaderPool pool(server.options(device, false));
  REQUIRE(pool.start());
  uint64_t before = pool.tick();
  device.ask('A');
  server.wait_for('A');
  uint64_t after = pool.tick();
  CHECK(pool.oldest_busy() > before);
  CHECK(pool.oldest_busy() <= after);
  server.let_go();
}

TEST_CASE("a reader spins while it pays") {
  Spin spin;
  REQUIRE(spin.begin());
  CHECK_FALSE(spin.begin());  // one at a time
  spin.end(true);
  REQUIRE(spin.begin());
  spin.end(false);
  int skipped = 0;
  while (!spin.begin()) ++skipped;
  CHECK(skipped == 2);
  spin.end(false);
  for (skipped = 0; !spin.begin(); ++skipped) continue;
  CHECK(skipped == 4);
  for (int i = 0; i < 20; ++i) {
    spin.end(false);
    for (skipped = 0; !spin.begin(); ++skipped) continue;
  }
  CHECK(skipped == 1 << Spin::kMostMisses);
  spin.end(true);
  CHECK(spin.begin());
  spin.end(true);
}

TEST_CASE("spinning stays only where it is faster") {
  bool pays = GENERATE(false, true);
  Spin spin;
  auto now = Spin::Clock::now();
  int spun = 0;
  for (int i = 0; i < 2 * Spin::kTrial + Spin::kStay; ++i) {
    bool spins = spin.begin();
    if (spins) spin.end(true);
    spun += spins;
    // A pause of its own now and then must not decide.
    bool pause = !spins && i % 100 == 0 && !pays;
    now += std::chrono::microseconds(pause ? 100000 : spins == pays ? 20 : 30);
    spin.taken(now);
  }
  CHECK(spun == Spin::kTrial + (pays ? Spin::kStay : 0));
  CHECK(spin.begin());  // and is tried anew
}
