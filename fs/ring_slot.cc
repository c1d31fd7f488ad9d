// SPDX-License-Identifier: Apache-2.0
#include "fs/ring_slot.h"

#include <linux/fuse.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

namespace stoplog::fs {
namespace {

constexpr size_t kPage = 4096;
static_assert(sizeof(fuse_in_header) + sizeof(ring::Header::argument) <= kPage);

}  // namespace

void RingSlot::Free::operator()(std::byte* memory) const { std::free(memory); }

// A page for what is put before the payload, the payload, a page of headers.
Result<RingSlot> RingSlot::create(size_t payload) {
  if (payload == 0 || payload % kPage != 0) return fail_errno(EINVAL);
  RingSlot out;
  out.size_ = payload;
  out.memory_.reset(static_cast<std::byte*>(
      std::aligned_alloc(kPage, kPage + payload + kPage)));
  if (!out.memory_) return fail_errno(ENOMEM);
  std::memset(&out.header(), 0, sizeof(ring::Header));
  return out;
}

std::byte* RingSlot::payload() const { return memory_.get() + kPage; }

ring::Header& RingSlot::header() const {
  return *reinterpret_cast<ring::Header*>(payload() + size_);
}

std::array<iovec, 2> RingSlot::parts() const {
  return {iovec{&header(), sizeof(ring::Header)}, iovec{payload(), size_}};
}

std::span<std::byte> RingSlot::take() {
  const ring::Header& from = header();
  fuse_in_header in{};
  std::memcpy(&in, from.in_out.data(), sizeof in);
  unique_ = in.unique;
  commit_id_ = from.entry.commit_id;
  answered_ = false;
  size_t rest = from.entry.payload;
  has_payload_ = rest != 0;
  if (rest > size_ || in.len < sizeof in + rest) return {};
  size_t argument = in.len - sizeof in - rest;
  if (argument > from.argument.size()) return {};
  std::byte* begin = payload() - argument - sizeof in;
  std::memcpy(begin, &in, sizeof in);
  std::memcpy(begin + sizeof in, from.argument.data(), argument);
  return {begin, in.len};
}

std::span<std::byte> RingSlot::room() {
  if (has_payload_) return {};
  return {payload(), size_};
}

ssize_t RingSlot::reply(const iovec* parts, int count) {
  constexpr size_t kHead = sizeof(fuse_out_header);
  if (answered_ || count < 1 || parts[0].iov_len < kHead) {
    errno = EINVAL;
    return -1;
  }
  size_t total = 0;
  for (int i = 0; i < count; ++i) total += parts[i].iov_len;
  if (total - kHead > size_) {
    errno = EMSGSIZE;
    return -1;
  }
  std::byte* to = payload();
  for (int i = 0; i < count; ++i) {
    size_t skip = i == 0 ? kHead : 0;
    const std::byte* from = static_cast<std::byte*>(parts[i].iov_base) + skip;
    size_t size = parts[i].iov_len - skip;
    if (from != to && size != 0) std::memmove(to, from, size);
    to += size;
  }
  ring::Header& head = header();
  std::memcpy(head.in_out.data(), parts[0].iov_base, kHead);
  head.entry.payload = static_cast<uint32_t>(total - kHead);
  answered_ = true;
  return static_cast<ssize_t>(total);
}

void RingSlot::reply_if_none() {
  if (answered_) return;
  fuse_out_header out{};
  out.len = sizeof out;
  out.error = -EIO;
  out.unique = unique_;
  iovec part{&out, sizeof out};
  static_cast<void>(reply(&part, 1));
}

}  // namespace stoplog::fs
