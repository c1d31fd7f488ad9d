// SPDX-License-Identifier: Apache-2.0
#include "fs/mount_wire.h"

#include <algorithm>
#include <cstring>

namespace stoplog::fs::wire {
namespace {

constexpr std::array<const char*, kOpcodes> make_names() {
  std::array<const char*, kOpcodes> names{};
  for (auto& name : names) name = "OTHER";
  names[FUSE_LOOKUP] = "LOOKUP";
  names[FUSE_FORGET] = "FORGET";
  names[FUSE_GETATTR] = "GETATTR";
  names[FUSE_SETATTR] = "SETATTR";
  names[FUSE_READLINK] = "READLINK";
  names[FUSE_SYMLINK] = "SYMLINK";
  names[FUSE_MKNOD] = "MKNOD";
  names[FUSE_MKDIR] = "MKDIR";
  names[FUSE_UNLINK] = "UNLINK";
  names[FUSE_RMDIR] = "RMDIR";
  names[FUSE_RENAME] = "RENAME";
  names[FUSE_LINK] = "LINK";
  names[FUSE_OPEN] = "OPEN";
  names[FUSE_READ] = "READ";
  names[FUSE_WRITE] = "WRITE";
  names[FUSE_STATFS] = "STATFS";
  names[FUSE_RELEASE] = "RELEASE";
  names[FUSE_FSYNC] = "FSYNC";
  names[FUSE_SETXATTR] = "SETXATTR";
  names[FUSE_GETXATTR] = "GETXATTR";
  names[FUSE_LISTXATTR] = "LISTXATTR";
  names[FUSE_REMOVEXATTR] = "REMOVEXATTR";
  names[FUSE_FLUSH] = "FLUSH";
  names[FUSE_INIT] = "INIT";
  names[FUSE_OPENDIR] = "OPENDIR";
  names[FUSE_READDIR] = "READDIR";
  names[FUSE_RELEASEDIR] = "RELEASEDIR";
  names[FUSE_FSYNCDIR] = "FSYNCDIR";
  names[FUSE_GETLK] = "GETLK";
  names[FUSE_SETLK] = "SETLK";
  names[FUSE_SETLKW] = "SETLKW";
  names[FUSE_ACCESS] = "ACCESS";
  names[FUSE_CREATE] = "CREATE";
  names[FUSE_INTERRUPT] = "INTERRUPT";
  names[FUSE_BMAP] = "BMAP";
  names[FUSE_DESTROY] = "DESTROY";
  names[FUSE_IOCTL] = "IOCTL";
  names[FUSE_POLL] = "POLL";
  names[FUSE_BATCH_FORGET] = "BATCH_FORGET";
  names[FUSE_FALLOCATE] = "FALLOCATE";
  names[FUSE_READDIRPLUS] = "READDIRPLUS";
  names[FUSE_RENAME2] = "RENAME2";
  names[FUSE_LSEEK] = "LSEEK";
  names[FUSE_COPY_FILE_RANGE] = "COPY_FILE_RANGE";
  names[FUSE_SYNCFS] = "SYNCFS";
  names[FUSE_TMPFILE] = "TMPFILE";
  names[52] = "STATX";  // newer than the headers of Debian 12
  return names;
}
constexpr auto kNames = make_names();

template <typename T>
void append(std::string& out, const T& part) {
  out.append(reinterpret_cast<const char*>(&part), sizeof part);
}

// error carries the notification's code, unique 0 marks it as one.
std::string notification(int32_t code, size_t payload) {
  fuse_out_header header{};
  header.len = static_cast<uint32_t>(sizeof header + payload);
  header.error = code;
  std::string out;
  append(out, header);
  return out;
}

}  // namespace

const char* opcode_name(uint32_t opcode) {
  return opcode < kOpcodes ? kNames[opcode] : "OTHER";
}

void Raw::copy(size_t offset, void* out, size_t size) const {
  if (offset >= bytes_.size()) return;
  std::memcpy(out, bytes_.data() + offset,
              std::min(size, bytes_.size() - offset));
}

fuse_in_header Raw::header() const {
  fuse_in_header out{};
  copy(0, &out, sizeof out);
  return out;
}

bool Raw::kills_suidgid() const {
  switch (opcode()) {
    case FUSE_WRITE:
      return (argument<fuse_write_in>().write_flags &
              FUSE_WRITE_KILL_SUIDGID) != 0;
    case FUSE_SETATTR:
      return (argument<fuse_setattr_in>().valid & FATTR_KILL_SUIDGID) != 0;
    default:
      return false;
  }
}

bool Raw::is_large() const {
  constexpr uint32_t kLarge = 32u << 10;
  switch (opcode()) {
    case FUSE_READ:
      return argument<fuse_read_in>().size >= kLarge;
    case FUSE_WRITE:
      return argument<fuse_write_in>().size >= kLarge;
    default:
      return false;
  }
}

bool Raw::is_writeback() const {
  return opcode() == FUSE_WRITE &&
         (argument<fuse_write_in>().write_flags & FUSE_WRITE_CACHE) != 0;
}

uint64_t extra_init_flags(uint64_t offered) {
  // Without V2 every write asks GETXATTR security.capability first: 70-100 us
  // against 4. Without PARALLEL_DIROPS, which libfuse 3.14 asks for and does
  // not answer, one look at a name that hangs holds up all others in its
  // directory.
  return offered &
         (FUSE_HANDLE_KILLPRIV_V2 | FUSE_SETXATTR_EXT | FUSE_PARALLEL_DIROPS);
}

uint64_t offered_flags(const fuse_init_in& in) {
  uint64_t upper = (in.flags & FUSE_INIT_EXT) != 0 ? in.flags2 : 0;
  return in.flags | upper << 32;
}

void add_init_flags(fuse_init_out& out, uint64_t flags) {
  out.flags |= static_cast<uint32_t>(flags);
  out.flags2 |= static_cast<uint32_t>(flags >> 32);
  if (flags >> 32 != 0) out.flags |= FUSE_INIT_EXT;
}

Stripped strip_setxattr_ext(std::span<std::byte> bytes) {
  constexpr size_t kExtra =
      sizeof(fuse_setxattr_in) - FUSE_COMPAT_SETXATTR_IN_SIZE;
  constexpr size_t kFull = sizeof(fuse_in_header) + sizeof(fuse_setxattr_in);
  constexpr size_t kPlain =
      sizeof(fuse_in_header) + FUSE_COMPAT_SETXATTR_IN_SIZE;
  if (bytes.size() < kFull) return {.size = bytes.size(), .flags = 0};
  auto argument = Raw(bytes).argument<fuse_setxattr_in>();
  std::memmove(bytes.data() + kPlain, bytes.data() + kFull,
               bytes.size() - kFull);
  auto header = Raw(bytes).header();
  header.len -= static_cast<uint32_t>(kExtra);
  std::memcpy(bytes.data(), &header, sizeof header);
  return {.size = bytes.size() - kExtra, .flags = argument.setxattr_flags};
}

std::string inval_inode(uint64_t node, int64_t offset, int64_t length) {
  fuse_notify_inval_inode_out body{};
  body.ino = node;
  body.off = offset;
  body.len = length;
  std::string out = notification(FUSE_NOTIFY_INVAL_INODE, sizeof body);
  append(out, body);
  return out;
}

std::string inval_entry(uint64_t parent, std::string_view name,
                        bool expire_only) {
  fuse_notify_inval_entry_out body{};
  body.parent = parent;
  body.namelen = static_cast<uint32_t>(name.size());
  body.flags = expire_only ? FUSE_EXPIRE_ONLY : 0;
  std::string out =
      notification(FUSE_NOTIFY_INVAL_ENTRY, sizeof body + name.size() + 1);
  append(out, body);
  out += name;
  out += '\0';
  return out;
}

std::string inc_epoch() {
  constexpr int32_t kIncEpoch = 8;  // newer than the headers of Debian 12
  return notification(kIncEpoch, 0);
}

std::string error_reply(uint64_t unique, int err) {
  fuse_out_header header{};
  header.len = sizeof header;
  header.error = -err;
  header.unique = unique;
  std::string out;
  append(out, header);
  return out;
}

}  // namespace stoplog::fs::wire
