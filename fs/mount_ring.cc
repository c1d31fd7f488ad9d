// SPDX-License-Identifier: Apache-2.0
#include "fs/mount_ring.h"

#include <unistd.h>

#include <algorithm>
#include <bit>
#include <chrono>
#include <optional>
#include <string>
#include <system_error>

#include "base/sys_processors.h"
#include "fs/mount_wake.h"

namespace stoplog::fs {
namespace {

// Where so many could be, a thread for each is more than it brings.
constexpr size_t kMostQueues = 512;
// As often as ReaderPool's one that dozes.
constexpr std::chrono::milliseconds kLook{3};
constexpr int kQuietLooks = 4;

}  // namespace

RingPool::RingPool(Options options) : options_(std::move(options)) {}

RingPool::~RingPool() { stop(); }

Status RingPool::prepare() {
  TRY(allow_wake());
  sys::Processors there = TRY(sys::processors());
  if (there.possible > kMostQueues)
    return fail(Code::kInvalid, "{} processors are possible", there.possible);
  for (size_t i = 0; i < there.possible; ++i)
    queues_.push_back(std::make_unique<Queue>());
  std::unique_lock lock(mutex_);
  std::vector<uint16_t> absent;
  int spawned = 0;
  for (uint16_t i = 0; i < there.possible; ++i) {
    if (!std::binary_search(there.online.begin(), there.online.end(), i)) {
      absent.push_back(i);
      continue;
    }
    TRY(spawn({i}, true));
    TRY(spawn({i}, false));
    spawned += 2;
  }
  if (!absent.empty()) {
    TRY(spawn(std::move(absent), false));
    ++spawned;
  }
  changed_.wait(lock, [&] { return prepared_ + failed_ == spawned; });
  if (failed_ > 0) return fail(Code::kUnsupported, "{}", why_);
  stage_ = Stage::kReady;
  return {};
}

void RingPool::go() {
  std::lock_guard lock(mutex_);
  if (stage_ != Stage::kReady) return;
  stage_ = Stage::kServing;
  changed_.notify_all();
  try {
    grower_ = std::thread([this] { grow(); });
  } catch (const std::system_error&) {
    // Two threads a queue have to do.
  }
}

Status RingPool::spawn(std::vector<uint16_t> queues, bool bound) {
  auto worker = std::make_unique<Worker>();
  worker->queues = std::move(queues);
  worker->bound = bound;
  Worker& self = *worker;
  SignalsHeld held;
  try {
    worker->thread = std::thread([this, &self] { run(self); });
  } catch (const std::system_error& error) {
    return fail_errno(error.code().value(), "cannot start a ring's thread");
  }
  for (uint16_t queue : self.queues) ++queues_[queue]->workers;
  workers_.push_back(std::move(worker));
  return {};
}

void RingPool::run(Worker& self) {
  self.tid = ::gettid();
  // Not allowed to be there: it serves from elsewhere, as well.
  if (self.bound) static_cast<void>(sys::bind_thread(self.queues.front()));
  auto served = serve_queues(self);
  if (!served && is_serving()) {
    options_.log("io_uring: " + served.error().text());
    options_.failed();
  }
  self.done = true;
}

// False: there is nothing to serve.
bool RingPool::ready(const std::optional<Error>& failed) {
  std::unique_lock lock(mutex_);
  ++(failed ? failed_ : prepared_);
  if (failed) why_ = failed->text();
  changed_.notify_all();
  if (failed) return false;
  changed_.wait(lock, [&] {
    return stage_ == Stage::kServing || stage_ == Stage::kStopping;
  });
  return stage_ == Stage::kServing;
}

Status RingPool::serve_queues(Worker& self) {
  auto ring = sys::CommandRing::create(
      static_cast<unsigned>(std::bit_ceil(self.queues.size())));
  std::vector<RingSlot> slots;
  std::optional<Error> failed;
  if (!ring) failed = std::move(ring).error();
  while (!failed && slots.size() < self.queues.size()) {
    auto slot = RingSlot::create(options_.payload);
    if (slot)
      slots.push_back(std::move(*slot));
    else
      failed = std::move(slot).error();
  }
  if (!ready(failed)) return {};
  auto submit = [&](uint32_t op, size_t i) -> Status {
    ring::Command argument{};
    argument.queue = self.queues[i];
    argument.commit_id = slots[i].commit_id();
    auto parts = slots[i].parts();
    bool registers = op == ring::kRegister;
    return ring->submit({.fd = options_.device,
                         .op = op,
                         .argument = std::as_bytes(std::span(&argument, 1)),
                         .address = registers ? parts.data() : nullptr,
                         .length = registers ? 2u : 0u,
                         .tag = i});
  };
  size_t left = slots.size();
  std::vector<bool> joined(slots.size());
  for (size_t i = 0; i < slots.size(); ++i) {
    ++queues_[self.queues[i]]->idle;
    TRY(submit(ring::kRegister, i));
  }
  while (!stopping_ && left > 0) {
    auto done = ring->wait();
    if (!done && done.error().err() == EINTR) continue;
    if (!done) return std::unexpected(std::move(done).error());
    if (done->result == -ENOTCONN) return {};  // unmounted or aborted
    Queue& queue = *queues_[self.queues[done->tag]];
    if (done->result < 0 && !joined[done->tag]) {
      note_refused(-done->result);
      --queue.idle;
      --left;
      continue;
    }
    if (done->result < 0) return fail_errno(-done->result, "no request came");
    joined[done->tag] = true;
    serve_one(self, slots[done->tag], queue);
    TRY(submit(ring::kCommitAndFetch, done->tag));
    // Not before: until then the answer may carry what was true before a tick.
    self.since = 0;
    ++queue.idle;
  }
  return {};
}

void RingPool::note_refused(int err) {
  if (refused_.exchange(true)) return;
  options_.log("requests come from the device alone: " +
               Error(Code::kErrno, "the kernel takes no ring", err).text());
}

void RingPool::serve_one(Worker& self, RingSlot& slot, Queue& queue) {
  self.since = options_.position();
  ++queue.taken;
  if (--queue.idle == 0) note_none_idle();
  auto request = slot.take();
  if (!request.empty()) options_.serve(slot, request);
  slot.reply_if_none();
}

void RingPool::note_none_idle() {
  if (looking_.exchange(true)) return;
  std::lock_guard lock(mutex_);
  look_.notify_one();
}

// Sleeps until a queue has nobody left, then looks a few times whether those it
// has are stuck.
void RingPool::grow() {
  std::unique_lock lock(mutex_);
  int quiet = 0;
  while (stage_ == Stage::kServing) {
    if (looking_) {
      look_.wait_for(lock, kLook);
    } else {
      look_.wait(lock);
      quiet = 0;
    }
    if (stage_ != Stage::kServing) return;
    quiet = grow_once() ? 0 : quiet + 1;
    if (quiet < kQuietLooks) continue;
    looking_ = false;
    // Whoever came to nobody idle meanwhile did not wake us.
    bool any = std::any_of(queues_.begin(), queues_.end(),
                           [](const auto& q) { return q->idle <= 0; });
    if (any) looking_ = true;
    quiet = 0;
  }
}

// Whether any queue had nobody left. mutex_ held.
bool RingPool::grow_once() {
  bool any = false;
  for (uint16_t i = 0; i < queues_.size(); ++i) {
    Queue& queue = *queues_[i];
    uint64_t taken = queue.taken;
    bool still = taken == queue.seen;
    queue.seen = taken;
    if (queue.idle > 0) continue;
    any = true;
    if (queue.workers >= options_.most_each) continue;
    if (still && all_blocked(i)) static_cast<void>(spawn({i}, false));
  }
  return any;
}

bool RingPool::all_blocked(uint16_t queue) const {
  return std::ranges::all_of(workers_, [queue](const auto& worker) {
    return worker->done || worker->queues.front() != queue ||
           worker->is_blocked();
  });
}

void RingPool::stop() {
  std::list<std::unique_ptr<Worker>> ending;
  {
    std::lock_guard lock(mutex_);
    stopping_ = true;
    stage_ = Stage::kStopping;
    changed_.notify_all();
    look_.notify_all();
  }
  if (grower_.joinable()) grower_.join();
  {
    std::lock_guard lock(mutex_);
    ending.swap(workers_);
  }
  end_all(std::move(ending));
}

uint64_t RingPool::oldest_busy() const {
  std::lock_guard lock(mutex_);
  return oldest_of(workers_);
}

bool RingPool::is_serving() const {
  std::lock_guard lock(mutex_);
  return stage_ == Stage::kServing;
}

bool RingPool::serves() const { return is_serving() && !refused_; }

int RingPool::threads() const {
  std::lock_guard lock(mutex_);
  return static_cast<int>(workers_.size());
}

}  // namespace stoplog::fs
