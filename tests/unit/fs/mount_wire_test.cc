// SPDX-License-Identifier: Apache-2.0
#include "fs/mount_wire.h"

#include <cstring>
#include <vector>

#include "catch_shim.h"

using namespace stoplog::fs;

namespace {

template <typename T>
std::vector<std::byte> request(uint32_t opcode, const T& argument,
                               std::string_view tail = {}) {
  fuse_in_header header{};
  header.opcode = opcode;
  header.unique = 7;
  header.len =
      static_cast<uint32_t>(sizeof header + sizeof argument + tail.size());
  std::vector<std::byte> out(header.len);
  std::memcpy(out.data(), &header, sizeof header);
  std::memcpy(out.data() + sizeof header, &argument, sizeof argument);
  std::memcpy(out.data() + sizeof header + sizeof argument, tail.data(),
              tail.size());
  return out;
}

}  // namespace

TEST_CASE("flags that libfuse hides are read from the request") {
  fuse_write_in write{};
  write.write_flags = FUSE_WRITE_KILL_SUIDGID;
  auto bytes = request(FUSE_WRITE, write, "data");
  CHECK(wire::Raw(bytes).kills_suidgid());
  CHECK_FALSE(wire::Raw(bytes).is_writeback());
  write.write_flags = FUSE_WRITE_CACHE;
  bytes = request(FUSE_WRITE, write);
  CHECK_FALSE(wire::Raw(bytes).kills_suidgid());
  CHECK(wire::Raw(bytes).is_writeback());
  fuse_setattr_in set{};
  set.valid = FATTR_SIZE | FATTR_KILL_SUIDGID;
  CHECK(wire::Raw(request(FUSE_SETATTR, set)).kills_suidgid());
  CHECK_FALSE(wire::Raw(request(FUSE_GETATTR, set)).kills_suidgid());
}

TEST_CASE("requests that move much are told from the others") {
  fuse_read_in read{};
  read.size = 128u << 10;
  CHECK(wire::Raw(request(FUSE_READ, read)).is_large());
  CHECK_FALSE(wire::Raw(request(FUSE_READDIR, read)).is_large());
  read.size = 4096;
  CHECK_FALSE(wire::Raw(request(FUSE_READ, read)).is_large());
  fuse_write_in write{};
  write.size = 1u << 20;
  CHECK(wire::Raw(request(FUSE_WRITE, write)).is_large());
  CHECK_FALSE(wire::Raw().is_large());
}

TEST_CASE("a request that is cut short reads as zeroes") {
  fuse_write_in write{};
  write.write_flags = FUSE_WRITE_KILL_SUIDGID;
  auto bytes = request(FUSE_WRITE, write);
  bytes.resize(sizeof(fuse_in_header) + 4);
  CHECK_FALSE(wire::Raw(bytes).kills_suidgid());
  bytes.resize(3);
  CHECK_FALSE(wire::Raw(bytes).valid());
  CHECK(wire::strip_setxattr_ext(bytes).size == 3);
}

TEST_CASE("an extended SETXATTR becomes a plain one") {
  fuse_setxattr_in in{};
  in.size = 3;
  in.flags = 1;
  in.setxattr_flags = FUSE_SETXATTR_ACL_KILL_SGID;
  std::string_view tail("user.a\0abc", 10);
  auto bytes = request(FUSE_SETXATTR, in, tail);
  auto stripped = wire::strip_setxattr_ext(bytes);
  CHECK(stripped.flags == uint32_t{FUSE_SETXATTR_ACL_KILL_SGID});
  CHECK(stripped.size == bytes.size() - 8);
  CHECK(wire::Raw(bytes).header().len == stripped.size);
  size_t at = sizeof(fuse_in_header) + FUSE_COMPAT_SETXATTR_IN_SIZE;
  CHECK(std::string_view(reinterpret_cast<const char*>(bytes.data()) + at,
                         10) == tail);
}

TEST_CASE("only offered INIT flags are asked for") {
  CHECK(wire::extra_init_flags(0) == 0);
  CHECK(wire::extra_init_flags(FUSE_SETXATTR_EXT | FUSE_ATOMIC_O_TRUNC) ==
        uint32_t{FUSE_SETXATTR_EXT});
}

TEST_CASE("a notification carries its own length and the name ends with NUL") {
  std::string bytes = wire::inval_entry(5, "name", true);
  fuse_out_header header{};
  std::memcpy(&header, bytes.data(), sizeof header);
  CHECK(header.len == bytes.size());
  CHECK(header.unique == 0);
  CHECK(header.error == FUSE_NOTIFY_INVAL_ENTRY);
  fuse_notify_inval_entry_out body{};
  std::memcpy(&body, bytes.data() + sizeof header, sizeof body);
  CHECK(body.parent == 5);
  CHECK(body.namelen == 4);
  CHECK(body.flags == uint32_t{FUSE_EXPIRE_ONLY});
  CHECK(bytes.ends_with(std::string_view("name\0", 5)));
}

TEST_CASE("flags of both halves are asked for as they were offered") {
  fuse_init_in in{};
  in.flags = FUSE_SETXATTR_EXT;
  in.flags2 = 1u << 9;
  CHECK(wire::offered_flags(in) == FUSE_SETXATTR_EXT);
  in.flags |= FUSE_INIT_EXT;
  CHECK(wire::offered_flags(in) ==
        (uint64_t{1} << 41 | FUSE_INIT_EXT | FUSE_SETXATTR_EXT));
  fuse_init_out out{};
  wire::add_init_flags(out, FUSE_SETXATTR_EXT);
  CHECK(out.flags == FUSE_SETXATTR_EXT);
  CHECK(out.flags2 == 0);
  wire::add_init_flags(out, uint64_t{1} << 41);
  CHECK(out.flags == (FUSE_SETXATTR_EXT | FUSE_INIT_EXT));
  CHECK(out.flags2 == 1u << 9);
}
