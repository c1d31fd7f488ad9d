// SPDX-License-Identifier: Apache-2.0
// CommandRing: io_uring(7) for commands to a device (IORING_OP_URING_CMD), as
// FUSE takes requests and answers over it. One thread makes, uses and ends it.
//
//   CommandRing ring = TRY(CommandRing::create(1));
//   TRY(ring.submit({.fd = device, .op = kCommit, .argument = bytes}));
//   Completion done = TRY(ring.wait());
//
// submit() returns when the kernel has acted on the command; what it answers
// later is a completion. wait() sleeps until there is one; EINTR comes through,
// for a signal is how a waiting thread is ended. Closing the ring cancels what
// it waits for. Fails with EPERM where kernel.io_uring_disabled says so, ENOSYS
// where there is no io_uring.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/fd.h"
#include "base/mmap.h"
#include "base/result.h"

struct io_uring_params;

namespace stoplog::sys {

class CommandRing {
 public:
  // How many commands may wait for their completion without an allocation.
  static Result<CommandRing> create(unsigned commands);

  struct Command {
    int fd = -1;
    uint32_t op = 0;
    std::span<const std::byte> argument;  // up to 80 bytes, copied
    const void* address = nullptr;        // what they mean is the device's
    uint32_t length = 0;
    uint64_t tag = 0;
  };
  Status submit(const Command& command);

  struct Completion {
    uint64_t tag = 0;
    int result = 0;
  };
  Result<Completion> wait();

 private:
  // Places in the shared memory, by their offsets from its begin.
  struct Places {
    uint32_t head = 0, tail = 0, mask = 0, first = 0;
  };
  CommandRing() = default;
  static Result<CommandRing> map(Fd fd, const io_uring_params& made);
  static uint32_t* at(Mmap& map, uint32_t offset);

  Fd fd_;
  Mmap queues_;  // both, as every kernel since 5.4 has them
  Mmap commands_;
  Places to_;    // what we submit
  Places from_;  // what is complete
};

// Whether FUSE may talk over io_uring: the kernel's own switch, root's to set.
bool fuse_offers_uring();

}  // namespace stoplog::sys
