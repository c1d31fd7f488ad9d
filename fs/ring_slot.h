// SPDX-License-Identifier: Apache-2.0
// RingSlot: the memory through which one request at a time comes from the
// kernel over io_uring, and its answer goes back. No system calls: what the
// ring does with it is fs/mount_ring's.
//
//   RingSlot slot = TRY(RingSlot::create(1 << 20));
//   ... registered with slot.parts(), a request has come ...
//   std::span<std::byte> request = slot.take();   // as read(2) gives it
//   slot.reply(parts, count);                     // as writev(2) takes it
//   ... committed under slot.commit_id() ...
//
// The kernel puts a request's head, its fixed argument and the rest into three
// places; the room before the third is such that putting the first two there
// makes one piece, which libfuse wants, without moving what is large.
#pragma once

#include <sys/uio.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "base/result.h"

namespace stoplog::fs {

// As <linux/fuse.h> has them since Linux 6.14; Debian 12's is older.
namespace ring {

struct Entry {
  uint64_t flags;
  uint64_t commit_id;
  uint32_t payload;  // bytes in the third place
  uint32_t padding;
  uint64_t reserved;
};
struct Header {
  std::array<std::byte, 128> in_out;  // fuse_in_header or fuse_out_header
  std::array<std::byte, 128> argument;
  Entry entry;
};
static_assert(sizeof(Header) == 288);
struct Command {
  uint64_t flags;
  uint64_t commit_id;
  uint16_t queue;
  std::array<std::byte, 6> padding;
};
static_assert(sizeof(Command) == 24);
inline constexpr uint32_t kRegister = 1;
inline constexpr uint32_t kCommitAndFetch = 2;
inline constexpr uint64_t kInitFlag = uint64_t{1} << 41;  // of flags, flags2

}  // namespace ring

class RingSlot {
 public:
  // `payload`: the most that a request or an answer carries, as agreed on in
  // INIT. Untouched memory costs nothing.
  static Result<RingSlot> create(size_t payload);

  std::array<iovec, 2> parts() const;
  // Empty: not a request (commit an answer all the same).
  std::span<std::byte> take();
  uint64_t commit_id() const { return commit_id_; }
  // Where an answer may be made in place: the request has nothing there, and
  // reply() does not copy what is there already.
  std::span<std::byte> room();
  // The bytes taken, or -1 with errno: one answer a request, within the room.
  ssize_t reply(const iovec* parts, int count);
  // EIO for a request that got no answer.
  void reply_if_none();

 private:
  struct Free {
    void operator()(std::byte* memory) const;
  };
  RingSlot() = default;
  std::byte* payload() const;
  ring::Header& header() const;

  std::unique_ptr<std::byte, Free> memory_;
  size_t size_ = 0;
  uint64_t unique_ = 0;
  uint64_t commit_id_ = 0;
  bool answered_ = true;
  bool has_payload_ = false;
};

}  // namespace stoplog::fs
