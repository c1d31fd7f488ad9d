// SPDX-License-Identifier: Apache-2.0
#include "base/sys_uring.h"

#include <fcntl.h>
#include <linux/io_uring.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstring>

#include "base/sys_file.h"

namespace stoplog::sys {
namespace {

// With 80 bytes of a command's own.
constexpr size_t kCommandSize = 2 * sizeof(io_uring_sqe);
constexpr size_t kArgumentAt = offsetof(io_uring_sqe, addr3);
static_assert(kArgumentAt == 48);
constexpr size_t kMostArgument = kCommandSize - kArgumentAt;

int enter(int fd, unsigned submitted, unsigned awaited, unsigned flags) {
  return static_cast<int>(
      ::syscall(SYS_io_uring_enter, fd, submitted, awaited, flags, nullptr, 0));
}

}  // namespace

uint32_t* CommandRing::at(Mmap& map, uint32_t offset) {
  return reinterpret_cast<uint32_t*>(map.writable().data() + offset);
}

Result<CommandRing> CommandRing::create(unsigned commands) {
  io_uring_params made{};
  // Completions are made when we ask, by the thread that asks: no signal to a
  // thread that serves, and no lock.
  made.flags = IORING_SETUP_SQE128 | IORING_SETUP_SINGLE_ISSUER |
               IORING_SETUP_DEFER_TASKRUN;
  long fd = ::syscall(SYS_io_uring_setup, commands, &made);
  if (fd < 0) return fail_errno(errno, "cannot make an io_uring");
  if ((made.features & IORING_FEAT_SINGLE_MMAP) == 0)
    return fail_errno(ENOSYS, "an io_uring of two mappings");
  return map(Fd(static_cast<int>(fd)), made);
}

Result<CommandRing> CommandRing::map(Fd fd, const io_uring_params& made) {
  size_t queues = std::max<size_t>(
      made.sq_off.array + made.sq_entries * sizeof(uint32_t),
      made.cq_off.cqes + made.cq_entries * sizeof(io_uring_cqe));
  CommandRing out;
  out.queues_ = TRY(Mmap::map(fd.get(), queues, Mmap::Access::kWrite));
  out.commands_ =
      TRY(Mmap::map_at(fd.get(), IORING_OFF_SQES,
                       made.sq_entries * kCommandSize, Mmap::Access::kWrite));
  out.to_ = {.head = made.sq_off.head,
             .tail = made.sq_off.tail,
             .mask = made.sq_off.ring_mask,
             .first = made.sq_off.array};
  out.from_ = {.head = made.cq_off.head,
               .tail = made.cq_off.tail,
               .mask = made.cq_off.ring_mask,
               .first = made.cq_off.cqes};
  out.fd_ = std::move(fd);
  return out;
}

Status CommandRing::submit(const Command& command) {
  if (command.argument.size() > kMostArgument) return fail_errno(E2BIG);
  io_uring_sqe head{};
  head.opcode = IORING_OP_URING_CMD;
  head.fd = command.fd;
  head.cmd_op = command.op;
  head.addr = reinterpret_cast<uintptr_t>(command.address);
  head.len = command.length;
  head.user_data = command.tag;
  // Every command was taken before submit() returned: there is always a place.
  uint32_t tail = *at(queues_, to_.tail);
  uint32_t place = tail & *at(queues_, to_.mask);
  std::byte* where = commands_.writable().data() + place * kCommandSize;
  std::memset(where, 0, kCommandSize);
  std::memcpy(where, &head, sizeof head);
  std::memcpy(where + kArgumentAt, command.argument.data(),
              command.argument.size());
  at(queues_, to_.first)[place] = place;
  std::atomic_ref(*at(queues_, to_.tail))
      .store(tail + 1, std::memory_order_release);
  int taken = 0;
  do {
    taken = enter(fd_.get(), 1, 0, 0);
  } while (taken < 0 && errno == EINTR);
  if (taken < 0) return fail_errno(errno, "cannot submit to an io_uring");
  if (taken != 1) return fail_errno(EAGAIN, "cannot submit to an io_uring");
  return {};
}

Result<CommandRing::Completion> CommandRing::wait() {
  for (;;) {
    uint32_t head = *at(queues_, from_.head);
    uint32_t tail = std::atomic_ref(*at(queues_, from_.tail))
                        .load(std::memory_order_acquire);
    if (head != tail) {
      io_uring_cqe done{};
      uint32_t place = head & *at(queues_, from_.mask);
      std::memcpy(&done,
                  queues_.bytes().data() + from_.first + place * sizeof done,
                  sizeof done);
      std::atomic_ref(*at(queues_, from_.head))
          .store(head + 1, std::memory_order_release);
      return Completion{.tag = done.user_data, .result = done.res};
    }
    if (enter(fd_.get(), 0, 1, IORING_ENTER_GETEVENTS) < 0)
      return fail_errno(errno, "cannot wait for an io_uring");
  }
}

bool fuse_offers_uring() {
  auto text =
      read_file(AT_FDCWD, "/sys/module/fuse/parameters/enable_uring", 8192);
  return text && text->starts_with('Y');
}

}  // namespace stoplog::sys
