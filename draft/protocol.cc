// SPDX-License-Identifier: Apache-2.0
#include "draft/protocol.h"

#include <unistd.h>

#include "base/memfd.h"

namespace stoplog::draft {
namespace {

struct Head {
  uint32_t magic = kMagic;
  uint16_t protocol = kProtocol;
  uint16_t op = 0;
  uint32_t serial = 0;
  uint32_t length = 0;
  bool outside = false;  // the payload is in the first fd
  template <class A>
  void visit(A& a) {
    a(magic, protocol, op, serial, length, outside);
  }
};
constexpr size_t kHeadSize = 17;

}  // namespace

ErrorReply ErrorReply::from(const Error& error) {
  // errno's words are put back by Error::text() on the other side.
  return {static_cast<int32_t>(error.code()), error.err(), error.message(),
          error.hint()};
}

Error ErrorReply::error() const {
  bool known = code >= 0 && code <= static_cast<int32_t>(Code::kInternal);
  Error error(known ? static_cast<Code>(code) : Code::kInternal, message, err);
  if (hint.empty()) return error;
  return std::move(error).with_hint(hint);
}

bool Welcome::has_shape(const std::string& digest,
                        const std::string& at) const {
  if (shape != digest) return false;
  if (!at.empty()) return mount == at;
  // Of root's jail the files of a view that is shown have foreign owners.
  return ::geteuid() != 0 || mount.empty();
}

Status send_op(int socket, Op op, uint32_t serial, const std::string& payload,
               std::span<const int> fds) {
  if (payload.size() > kMaxPayload)
    return fail(Code::kInvalid, "a message of {} bytes is too large",
                payload.size());
  Head frame;
  frame.op = static_cast<uint16_t>(op);
  frame.serial = serial;
  frame.length = static_cast<uint32_t>(payload.size());
  frame.outside = payload.size() > kMaxInline;
  std::string packet = encode(frame);
  std::vector<int> all;
  Fd memfd;
  if (frame.outside) {
    memfd = TRY(sealed_memfd("stoplog-message", payload));
    all.push_back(memfd.get());
  } else {
    packet += payload;
  }
  all.insert(all.end(), fds.begin(), fds.end());
  return send_message(socket, packet, all);
}

Result<Message> parse_packet(Frame packet) {
  if (packet.data.size() < kHeadSize)
    return fail(Code::kInvalid, "malformed message");
  Head frame =
      TRY(decode<Head>(std::string_view(packet.data).substr(0, kHeadSize)));
  if (frame.magic != kMagic)
    return fail(Code::kInvalid, "not a stoplog message");
  Message message;
  message.op = static_cast<Op>(frame.op);
  message.protocol = frame.protocol;
  message.serial = frame.serial;
  if (frame.length > kMaxPayload)
    return fail(Code::kInvalid, "a message of {} bytes is too large",
                frame.length);
  if (frame.outside) {
    if (packet.fds.empty() || packet.data.size() != kHeadSize)
      return fail(Code::kInvalid, "malformed message");
    message.payload =
        TRY(read_sealed_memfd(packet.fds.front().get(), kMaxPayload));
    packet.fds.erase(packet.fds.begin());
  } else {
    message.payload = packet.data.substr(kHeadSize);
  }
  if (message.payload.size() != frame.length)
    return fail(Code::kInvalid, "malformed message");
  message.fds = std::move(packet.fds);
  return message;
}

Result<std::optional<Message>> receive_op(int socket) {
  Frame packet = TRY(recv_message(socket, kMaxPacket));
  if (packet.data.empty() && packet.fds.empty()) return std::nullopt;
  return TRY(parse_packet(std::move(packet)));
}

}  // namespace stoplog::draft
