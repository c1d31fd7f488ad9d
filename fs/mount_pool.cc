// SPDX-License-Identifier: Apache-2.0
#include "fs/mount_pool.h"

#include <pthread.h>
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
  for (int i = 0; i < options_.first; ++i) TRY(spawn());
  return {};
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
  ++idle_;
  try {
    worker->thread = std::thread([this, &self] { run(self); });
  } catch (const std::system_error& error) {
    --idle_;
    return fail_errno(error.code().value(), "cannot start a reader thread");
  }
  ++alive_;
  workers_.push_back(std::move(worker));
  return {};
}

void ReaderPool::grow() {
  std::lock_guard lock(mutex_);
  if (stopping_ || alive_ >= options_.most || idle_ > 0) return;
  // Without another thread the request is still served, only later.
  static_cast<void>(spawn());
}

// True: this reader ends, there are enough idle ones.
bool ReaderPool::retire(Worker& self) {
  if (idle_ < options_.first) return false;
  std::lock_guard lock(mutex_);
  if (stopping_ || alive_ <= options_.first) return false;
  --alive_;
  self.done = true;
  return true;
}

void ReaderPool::run(Worker& self) {
  work(self);
  if (self.done) return;
  if (!stopping_ && !gone_.exchange(true)) {
    uint64_t one = 1;
    static_cast<void>(!::write(ended_.get(), &one, sizeof one));
  }
  self.done = true;
}

void ReaderPool::work(Worker& self) {
  std::unique_ptr<std::byte, void (*)(void*)> buffer(
      static_cast<std::byte*>(std::aligned_alloc(4096, options_.buffer)),
      std::free);
  if (!buffer) {
    --idle_;
    return;
  }
  for (;;) {
    if (stopping_) break;
    ssize_t n = ::read(options_.device, buffer.get(), options_.buffer);
    if (n < 0) {
      // ENOENT: the request was interrupted between queue and read.
      if (errno == EINTR || errno == ENOENT || errno == EAGAIN) continue;
      break;  // ENODEV: unmounted or aborted
    }
    if (n == 0) break;
    self.since = sequence_.load();
    if (--idle_ == 0) grow();
    options_.serve({buffer.get(), static_cast<size_t>(n)});
    self.since = 0;
    if (retire(self)) return;
    ++idle_;
  }
  --idle_;
}

void ReaderPool::stop() {
  stopping_ = true;
  std::list<std::unique_ptr<Worker>> ending;
  {
    // Not held while waiting: a reader on its way out takes it too.
    std::lock_guard lock(mutex_);
    ending.swap(workers_);
    alive_ = 0;
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
