// SPDX-License-Identifier: Apache-2.0
#include "fs/mount_pool.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <limits>
#include <system_error>

namespace stoplog::fs {
namespace {

int wake_signal() { return SIGRTMIN + 5; }
void on_wake(int) {}

// Readers take no signal but the wake: the daemon's own are for its own loop.
class SignalsHeld {
 public:
  SignalsHeld() {
    sigset_t all;
    sigfillset(&all);
    sigdelset(&all, wake_signal());
    pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~SignalsHeld() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  SignalsHeld(const SignalsHeld&) = delete;
  SignalsHeld& operator=(const SignalsHeld&) = delete;

 private:
  sigset_t before_{};
};

// The one that dozes looks this often whether the readers are stuck, and after
// so many looks without a request sleeps until the next one.
constexpr std::chrono::milliseconds kLook{3};
constexpr int kQuietLooks = 4;
constexpr int kSmallAfterLarge = 64;

}  // namespace

ReaderPool::ReaderPool(Options options) : options_(std::move(options)) {}

ReaderPool::~ReaderPool() { stop(); }

Status ReaderPool::start() {
  ended_ = Fd(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!ended_) return fail_errno(errno);
  struct sigaction action{};
  action.sa_handler = on_wake;  // no SA_RESTART: read must return
  if (::sigaction(wake_signal(), &action, nullptr) < 0)
    return fail_errno(errno);
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

// True: this thread reads from now on; false: it ends.
bool ReaderPool::doze() {
  std::unique_lock lock(mutex_);
  if (dozing_ > 0 && reading_ >= wanted()) return false;
  ++dozing_;
  uint64_t seen = taken_;
  int quiet = 0;
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
    quiet = now == seen ? quiet + 1 : 0;
    needed = now == seen && waiting_ == 0;
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

void ReaderPool::note_taken(std::span<const std::byte> request) {
  ++taken_;
  if (options_.polled >= 0) spin_.taken(Spin::Clock::now());
  bool wake = deep_;
  if (options_.is_large && options_.is_large(request)) {
    large_ = kSmallAfterLarge;
    wake |= reading_ < wanted();
  } else if (large_ > 0) {
    --large_;
  }
  if (wake) wake_dozing();
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
    std::span<std::byte> bytes{buffer, static_cast<size_t>(n)};
    note_taken(bytes);
    options_.serve({.bytes = bytes, .device = device});
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
  for (auto& worker : ending) {
    // The signal can come just before the read begins: repeat until it ends.
    while (!worker->done) {
      ::pthread_kill(worker->thread.native_handle(), wake_signal());
      std::this_thread::sleep_for(std::chrono::microseconds(200));
    }
    worker->thread.join();
  }
}

uint64_t ReaderPool::oldest_busy() const {
  std::lock_guard lock(mutex_);
  uint64_t oldest = std::numeric_limits<uint64_t>::max();
  for (const auto& worker : workers_) {
    uint64_t since = worker->since;
    if (since != 0) oldest = std::min(oldest, since);
  }
  return oldest;
}

int ReaderPool::threads() const {
  std::lock_guard lock(mutex_);
  return alive_;
}

}  // namespace stoplog::fs
