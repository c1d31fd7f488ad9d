// SPDX-License-Identifier: Apache-2.0
#include "fs/mount_pool.h"

#include <sched.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <system_error>

#include "fs/mount_wake.h"

namespace stoplog::fs {
namespace {

// The one that dozes looks this often whether the readers are stuck, and after
// so many looks without a request sleeps until the next one.
constexpr std::chrono::milliseconds kLook{3};
constexpr int kQuietLooks = 4;
// Readers that take nothing new for so long are at something slow.
constexpr int kStalledLooks = 2;

// One more reader stays for so many requests that did not need it.
constexpr int kStays = 64;
constexpr int kMostWanted = 16;
// A request that took longer may have waited for a disk or a network.
constexpr std::chrono::microseconds kSlow{100};

// How often this thread has slept since it began.
long sleeps() {
  struct rusage usage{};
  (void)::getrusage(RUSAGE_THREAD, &usage);
  return usage.ru_nvcsw;
}

}  // namespace

ReaderPool::ReaderPool(Options options) : options_(std::move(options)) {}

ReaderPool::~ReaderPool() { stop(); }

Status ReaderPool::start() {
  ended_ = Fd(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!ended_) return fail_errno(errno);
  TRY(allow_wake());
  std::lock_guard lock(mutex_);
  TRY(spawn());    // to read
  return spawn();  // to doze
}

Status ReaderPool::spawn() {
  std::erase_if(workers_, [](const std::unique_ptr<Worker>& worker) {
    if (!worker->done) return false;
    worker->thread.join();
    return true;
  });
  auto worker = std::make_unique<Worker>();
  Worker& self = *worker;
  SignalsHeld held;
  try {
    worker->thread = std::thread([this, &self] { run(self); });
  } catch (const std::system_error& error) {
    return fail_errno(error.code().value(), "cannot start a reader thread");
  }
  ++alive_;
  workers_.push_back(std::move(worker));
  return {};
}

void ReaderPool::run(Worker& self) {
  self.tid = ::gettid();
  std::unique_ptr<std::byte, void (*)(void*)> buffer(
      static_cast<std::byte*>(std::aligned_alloc(4096, options_.buffer)),
      std::free);
  bool connected = buffer != nullptr;
  while (connected && doze()) {
    connected = read_until_surplus(self, buffer.get());
    --reading_;
  }
  if (!connected && !stopping_ && !gone_.exchange(true)) {
    uint64_t one = 1;
    static_cast<void>(!::write(ended_.get(), &one, sizeof one));
  }
  std::lock_guard lock(mutex_);
  --alive_;
  wake_.notify_all();  // what dozes ends with the connection
  self.done = true;
}

// Whether all readers wait: then one more serves others meanwhile. mutex_ held.
bool ReaderPool::readers_blocked() const {
  return std::ranges::all_of(workers_, [](const auto& worker) {
    return worker->since == 0 || worker->done || worker->is_blocked();
  });
}

// True: this thread reads from now on; false: it ends.
bool ReaderPool::doze() {
  std::unique_lock lock(mutex_);
  if (dozing_ > 0 && reading_ >= wanted()) return false;
  ++dozing_;
  uint64_t seen = taken_;
  int quiet = 0, stalled = 0;
  bool needed = false;
  while (!stopping_ && !gone_ && !needed) {
    if (reading_ < wanted()) {
      needed = true;
      break;
    }
    if (quiet < kQuietLooks) {
      wake_.wait_for(lock, kLook);
    } else {
      deep_ = true;  // before the look at taken_: see note_taken()
      if (taken_ == seen && !stopping_ && !gone_) wake_.wait(lock);
      deep_ = false;
      quiet = 0;
    }
    uint64_t now = taken_;
    // Deep sleep is for when somebody waits in the device: a request in hand
    // may still come to hang.
    bool all_busy = waiting_ == 0;
    quiet = now == seen && !all_busy ? quiet + 1 : 0;
    stalled = now == seen && all_busy ? stalled + 1 : 0;
    needed = all_busy && (stalled >= kStalledLooks || readers_blocked());
    seen = now;
  }
  --dozing_;
  if (!needed || stopping_ || gone_) return false;
  ++reading_;
  // Without another thread requests are still served, only later.
  if (dozing_ == 0 && alive_ < options_.most) static_cast<void>(spawn());
  return true;
}

void ReaderPool::wake_dozing() {
  std::lock_guard lock(mutex_);
  wake_.notify_one();
}

void ReaderPool::note_taken(std::span<const std::byte> request,
                            Spin::Clock::time_point now) {
  ++taken_;
  if (options_.polled >= 0) spin_.taken(now);
  bool wake = deep_;
  if (options_.is_large && options_.is_large(request)) {
    if (demand_ < kStays) demand_ = kStays;
    wake |= reading_ < wanted();
  } else if (demand_ > 0) {
    --demand_;
  }
  if (wake) wake_dozing();
}

int ReaderPool::wanted() const {
  return std::min(options_.least + (demand_ + kStays - 1) / kStays,
                  kMostWanted);
}

// Slept while it was served, and nobody was there for the next one.
void ReaderPool::note_slept() {
  if (waiting_ > 0 || wanted() >= kMostWanted) return;
  demand_ += kStays;
  wake_dozing();
}

void ReaderPool::serve(const Request& request, bool* was_slow) {
  // The clock is cheap, the count of sleeps is not.
  long before = *was_slow ? sleeps() : 0;
  auto began = Spin::Clock::now();
  note_taken(request.bytes, began);
  options_.serve(request);
  bool slow = Spin::Clock::now() - began > kSlow;
  if (slow && *was_slow && sleeps() > before) note_slept();
  *was_slow = slow;
}

ssize_t ReaderPool::next(std::byte* buffer, int* device) {
  if (options_.polled >= 0 && spin_.begin()) {
    auto end = Spin::Clock::now() + Spin::kTime;
    ssize_t n = -1;
    int error = EAGAIN;
    for (;;) {
      n = ::read(options_.polled, buffer, options_.buffer);
      error = n < 0 ? errno : 0;
      if (error != EAGAIN || stopping_ || Spin::Clock::now() >= end) break;
      // Whoever wants this processor has it, the caller above all.
      ::sched_yield();
    }
    spin_.end(error != EAGAIN);
    if (error != EAGAIN) {
      *device = options_.polled;
      errno = error;
      return n;
    }
  }
  *device = options_.device;
  return ::read(options_.device, buffer, options_.buffer);
}

// True: enough others wait for requests; false: the connection has ended.
bool ReaderPool::read_until_surplus(Worker& self, std::byte* buffer) {
  bool was_slow = false;
  while (!stopping_) {
    ++waiting_;
    int device = -1;
    ssize_t n = next(buffer, &device);
    int error = n < 0 ? errno : 0;
    --waiting_;
    // ENOENT: the request was interrupted between queue and read.
    if (error == EINTR || error == ENOENT || error == EAGAIN) continue;
    if (n <= 0) return false;  // ENODEV: unmounted or aborted
    self.since = sequence_.load();
    serve({.bytes = {buffer, static_cast<size_t>(n)}, .device = device},
          &was_slow);
    self.since = 0;
    if (waiting_ >= wanted()) return true;
  }
  return false;
}

void ReaderPool::stop() {
  stopping_ = true;
  std::list<std::unique_ptr<Worker>> ending;
  {
    // Not held while waiting: a reader on its way out takes it too.
    std::lock_guard lock(mutex_);
    ending.swap(workers_);
    wake_.notify_all();
  }
  end_all(std::move(ending));
}

uint64_t ReaderPool::oldest_busy() const {
  std::lock_guard lock(mutex_);
  return oldest_of(workers_);
}

int ReaderPool::threads() const {
  std::lock_guard lock(mutex_);
  return alive_;
}

}  // namespace stoplog::fs
