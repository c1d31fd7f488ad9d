// SPDX-License-Identifier: Apache-2.0
#include "fs/ring_slot.h"

#include <linux/fuse.h>

#include <cerrno>
#include <cstring>
#include <string>
#include <string_view>

#include "catch_shim.h"

using namespace stoplog::fs;

namespace {

constexpr size_t kPayload = 8192;

// What the kernel does with a slot.
struct Kernel {
  explicit Kernel(RingSlot& slot) : parts(slot.parts()) {}

  ring::Header& header() {
    return *static_cast<ring::Header*>(parts[0].iov_base);
  }
  std::string_view payload() {
    return {static_cast<char*>(parts[1].iov_base), header().entry.payload};
  }
  void send(uint32_t opcode, std::string_view argument,
            std::string_view payload) {
    fuse_in_header in{};
    in.opcode = opcode;
    in.unique = 42;
    in.len =
        static_cast<uint32_t>(sizeof in + argument.size() + payload.size());
    std::memcpy(header().in_out.data(), &in, sizeof in);
    std::memcpy(header().argument.data(), argument.data(), argument.size());
    std::memcpy(parts[1].iov_base, payload.data(), payload.size());
    header().entry.payload = static_cast<uint32_t>(payload.size());
    header().entry.commit_id = 42;
  }
  fuse_out_header answer() {
    fuse_out_header out{};
    std::memcpy(&out, header().in_out.data(), sizeof out);
    return out;
  }

  std::array<iovec, 2> parts;
};

std::string text(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

iovec part(std::string& bytes) { return {bytes.data(), bytes.size()}; }

std::string head(uint32_t rest) {
  fuse_out_header out{};
  out.len = static_cast<uint32_t>(sizeof out) + rest;
  out.unique = 42;
  return {reinterpret_cast<char*>(&out), sizeof out};
}

}  // namespace

TEST_CASE("a request in three places is taken as one piece") {
  RingSlot slot = RingSlot::create(kPayload).value();
  Kernel kernel(slot);
  std::string content(kPayload, 'x');
  kernel.send(FUSE_WRITE, "the fixed argument", content);
  auto request = slot.take();
  REQUIRE(request.size() == sizeof(fuse_in_header) + 18 + kPayload);
  CHECK(text(request.subspan(sizeof(fuse_in_header))) ==
        "the fixed argument" + content);
  CHECK(slot.commit_id() == 42);
  CHECK(slot.room().empty());
  // What is large has not been moved.
  CHECK(reinterpret_cast<char*>(request.data()) + request.size() ==
        static_cast<char*>(kernel.parts[1].iov_base) + kPayload);
}

TEST_CASE("a request without a fixed argument is taken") {
  RingSlot slot = RingSlot::create(kPayload).value();
  Kernel kernel(slot);
  kernel.send(FUSE_LOOKUP, "", std::string_view("name\0", 5));
  auto request = slot.take();
  CHECK(text(request.subspan(sizeof(fuse_in_header))) ==
        std::string("name\0", 5));
}

TEST_CASE("lengths of a request that do not fit together are no request") {
  RingSlot slot = RingSlot::create(kPayload).value();
  Kernel kernel(slot);
  auto with = [&](uint32_t length, uint32_t payload) {
    kernel.send(FUSE_LOOKUP, "", "");
    fuse_in_header in{};
    std::memcpy(&in, kernel.header().in_out.data(), sizeof in);
    in.len = length;
    std::memcpy(kernel.header().in_out.data(), &in, sizeof in);
    kernel.header().entry.payload = payload;
    return slot.take();
  };
  constexpr uint32_t kHead = sizeof(fuse_in_header);
  CHECK(with(kHead, 0).size() == kHead);
  CHECK(with(kHead - 1, 0).empty());
  CHECK(with(kHead, 1).empty());
  CHECK(with(kHead + 128, 0).size() == kHead + 128);
  CHECK(with(kHead + 129, 0).empty());
  CHECK(with(kHead + kPayload, kPayload).size() == kHead + kPayload);
  CHECK(with(kHead + kPayload + 1, kPayload + 1).empty());
  CHECK(with(~0u, ~0u).empty());
  // Such a one is answered all the same.
  slot.reply_if_none();
  CHECK(kernel.answer().error == -EIO);
  CHECK(kernel.answer().unique == 42);
}

TEST_CASE("an answer in parts or in place arrives whole") {
  RingSlot slot = RingSlot::create(kPayload).value();
  Kernel kernel(slot);
  kernel.send(FUSE_GETATTR, "argument", "");
  slot.take();
  std::string first = head(6) + "ab", second = "cd", third = "ef";
  iovec parts[] = {part(first), part(second), part(third)};
  CHECK(slot.reply(parts, 3) ==
        static_cast<ssize_t>(sizeof(fuse_out_header)) + 6);
  CHECK(kernel.payload() == "abcdef");
  CHECK(kernel.answer().unique == 42);
  CHECK(kernel.answer().error == 0);

  kernel.send(FUSE_READ, "argument", "");
  slot.take();
  auto room = slot.room();
  REQUIRE(room.size() == kPayload);
  std::memset(room.data(), 'r', room.size());
  std::string begin = head(kPayload);
  iovec in_place[] = {part(begin), {room.data(), room.size()}};
  CHECK(slot.reply(in_place, 2) > 0);
  CHECK(kernel.payload() == std::string(kPayload, 'r'));
}

TEST_CASE("a request gets one answer of at most the agreed size") {
  RingSlot slot = RingSlot::create(kPayload).value();
  Kernel kernel(slot);
  std::string begin = head(0), rest(kPayload + 1, 'x');
  iovec parts[] = {part(begin), part(rest)};
  CHECK(slot.reply(parts, 1) == -1);  // nothing was asked
  kernel.send(FUSE_GETATTR, "argument", "");
  slot.take();
  CHECK(slot.reply(parts, 2) == -1);
  CHECK(errno == EMSGSIZE);
  CHECK(slot.reply(parts, 1) == sizeof(fuse_out_header));
  CHECK(slot.reply(parts, 1) == -1);
  CHECK(errno == EINVAL);
  slot.reply_if_none();
  CHECK(kernel.answer().error == 0);
}
