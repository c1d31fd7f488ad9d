// SPDX-License-Identifier: Apache-2.0
// The parts of the FUSE protocol that libfuse 3.14 hides: request flags, two
// INIT flags, the extended SETXATTR, O_TMPFILE, and notifications with
// expire-only. Pure functions over bytes in memory; the kernel is trusted, yet
// every length is checked.
//
//   Raw raw(bytes);              // one request as read from /dev/fuse
//   raw.opcode(), raw.kills_suidgid(), ...
//   strip_setxattr_ext(bytes);   // what libfuse can parse
//
// Why not a protocol implementation of our own: see docs/DECISIONS.md.
#pragma once

#include <linux/fuse.h>
#include <sys/types.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace stoplog::fs::wire {

// libfuse refuses opcodes above its own table; counters go up to here.
inline constexpr uint32_t kOpcodes = 64;
const char* opcode_name(uint32_t opcode);

// A request that stays in its reader's buffer while it is served.
class Raw {
 public:
  Raw() = default;
  explicit Raw(std::span<const std::byte> bytes) : bytes_(bytes) {}
  bool valid() const { return bytes_.size() >= sizeof(fuse_in_header); }
  fuse_in_header header() const;
  uint32_t opcode() const { return header().opcode; }
  // The struct after the header; zeroes where the request is shorter.
  template <typename T>
  T argument() const {
    T out{};
    copy(sizeof(fuse_in_header), &out, sizeof out);
    return out;
  }
  // WRITE and SETATTR: the caller lacks CAP_FSETID.
  bool kills_suidgid() const;
  // WRITE: from the page cache, not from a write(2).
  bool is_writeback() const;
  // READ or WRITE of so much that copying it is most of the work.
  bool is_large() const;

 private:
  void copy(size_t offset, void* out, size_t size) const;
  std::span<const std::byte> bytes_;
};

// What we want beyond libfuse's knowledge, of what the kernel offered; flags2
// are the upper half.
uint64_t extra_init_flags(uint64_t offered);
uint64_t offered_flags(const fuse_init_in& in);
void add_init_flags(fuse_init_out& out, uint64_t flags);

// A SETXATTR with the extended struct becomes one with the plain struct, in
// place; returns the flags it carried (FUSE_SETXATTR_ACL_KILL_SGID).
struct Stripped {
  size_t size = 0;
  uint32_t flags = 0;
};
Stripped strip_setxattr_ext(std::span<std::byte> bytes);

// Notifications, ready to be written to the device.
std::string inval_inode(uint64_t node, int64_t offset, int64_t length);
std::string inval_entry(uint64_t parent, std::string_view name,
                        bool expire_only);

// Every cached name is asked again, absent ones too. Linux 6.16; EINVAL before.
std::string inc_epoch();

// A reply without libfuse.
std::string error_reply(uint64_t unique, int err);
template <typename... Parts>
std::string reply(uint64_t unique, const Parts&... parts) {
  fuse_out_header header{};
  header.len = static_cast<uint32_t>(sizeof header + (0 + ... + sizeof parts));
  header.unique = unique;
  std::string out(reinterpret_cast<const char*>(&header), sizeof header);
  (out.append(reinterpret_cast<const char*>(&parts), sizeof parts), ...);
  return out;
}

}  // namespace stoplog::fs::wire
