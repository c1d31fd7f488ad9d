// SPDX-License-Identifier: Apache-2.0
#include "base/unix_socket.h"

#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <memory>

#include "base/sys_file.h"
#include "base/sys_retry.h"

namespace stoplog {
namespace {

Result<sockaddr_un> address_of(int dir, std::string_view name) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::string path = fmt::format("/proc/self/fd/{}/{}", dir, name);
  if (path.size() >= sizeof address.sun_path) return fail_errno(ENAMETOOLONG);
  path.copy(address.sun_path, path.size());
  return address;
}

Result<Fd> new_socket(int type) {
  int fd = ::socket(AF_UNIX, type | SOCK_CLOEXEC, 0);
  if (fd < 0) return fail_errno(errno);
  return Fd(fd);
}

constexpr size_t kControlSize = CMSG_SPACE(sizeof(int) * kMaxFdsPerMessage);

// sendmsg once; the number of bytes that went.
Result<size_t> send_some(int socket, std::string_view data,
                         std::span<const int> fds) {
  if (fds.size() > kMaxFdsPerMessage) return fail_errno(E2BIG);
  iovec part{.iov_base = const_cast<char*>(data.data()),
             .iov_len = data.size()};
  alignas(cmsghdr) std::array<std::byte, kControlSize> control{};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  if (!fds.empty()) {
    message.msg_control = control.data();
    message.msg_controllen = CMSG_SPACE(fds.size_bytes());
    cmsghdr* head = CMSG_FIRSTHDR(&message);
    head->cmsg_level = SOL_SOCKET;
    head->cmsg_type = SCM_RIGHTS;
    head->cmsg_len = CMSG_LEN(fds.size_bytes());
    std::memcpy(CMSG_DATA(head), fds.data(), fds.size_bytes());
  }
  ssize_t n =
      sys::retry([&] { return ::sendmsg(socket, &message, MSG_NOSIGNAL); });
  if (n < 0) return fail_errno(errno);
  return static_cast<size_t>(n);
}

// Takes every fd out of a message, so that none leaks whatever follows.
void take_fds(msghdr& message, std::vector<Fd>& fds) {
  for (cmsghdr* head = CMSG_FIRSTHDR(&message); head != nullptr;
       head = CMSG_NXTHDR(&message, head)) {
    if (head->cmsg_level != SOL_SOCKET || head->cmsg_type != SCM_RIGHTS)
      continue;
    size_t count = (head->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (size_t i = 0; i < count; ++i) {
      int fd = -1;
      std::memcpy(&fd, CMSG_DATA(head) + i * sizeof(int), sizeof fd);
      fds.emplace_back(fd);
    }
  }
}

// recvmsg once; MSG_TRUNC is left in `flags` for the caller to judge.
Result<size_t> recv_some(int socket, std::span<char> out, std::vector<Fd>& fds,
                         int& flags) {
  iovec part{.iov_base = out.data(), .iov_len = out.size()};
  alignas(cmsghdr) std::array<std::byte, kControlSize> control{};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  ssize_t n =
      sys::retry([&] { return ::recvmsg(socket, &message, MSG_CMSG_CLOEXEC); });
  if (n < 0) return fail_errno(errno);
  take_fds(message, fds);
  flags = message.msg_flags;
  if ((flags & MSG_CTRUNC) != 0) return fail_errno(EMFILE);
  return static_cast<size_t>(n);
}

Status recv_exactly(int socket, std::span<char> out, std::vector<Fd>& fds) {
  while (!out.empty()) {
    int flags = 0;
    size_t n = TRY(recv_some(socket, out, fds, flags));
    if (n == 0) return fail_errno(ECONNRESET);
    out = out.subspan(n);
  }
  if (fds.size() > kMaxFdsPerMessage) return fail_errno(E2BIG);
  return {};
}

}  // namespace

Result<Fd> listen_unix(int dir, std::string_view name, int type) {
  sockaddr_un address = TRY(address_of(dir, name));
  Fd socket = TRY(new_socket(type));
  auto gone = sys::unlinkat(dir, std::string(name));
  if (!gone && gone.error().err() != ENOENT)
    return std::unexpected(std::move(gone).error());
  TRY(sys::done(::bind(socket.get(), reinterpret_cast<sockaddr*>(&address),
                       sizeof address)));
  // Nobody can connect before listen(), so the mode is never too wide.
  TRY(sys::done(::chmod(address.sun_path, 0600)));
  TRY(sys::done(::listen(socket.get(), SOMAXCONN)));
  return socket;
}

Result<Fd> connect_unix(int dir, std::string_view name, int type) {
  sockaddr_un address = TRY(address_of(dir, name));
  Fd socket = TRY(new_socket(type));
  TRY(sys::done(sys::retry([&] {
    return ::connect(socket.get(), reinterpret_cast<sockaddr*>(&address),
                     sizeof address);
  })));
  return socket;
}

Result<Fd> accept_unix(int listener) {
  int fd = sys::retry(
      [&] { return ::accept4(listener, nullptr, nullptr, SOCK_CLOEXEC); });
  if (fd < 0) return fail_errno(errno);
  return Fd(fd);
}

Result<SocketPair> socket_pair(int type) {
  int fds[2];
  if (::socketpair(AF_UNIX, type | SOCK_CLOEXEC, 0, fds) < 0)
    return fail_errno(errno);
  return SocketPair{.first = Fd(fds[0]), .second = Fd(fds[1])};
}

Result<Peer> peer_of(int socket) {
  ucred credentials{};
  socklen_t size = sizeof credentials;
  TRY(sys::done(
      ::getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &credentials, &size)));
  return Peer{
      .pid = credentials.pid, .uid = credentials.uid, .gid = credentials.gid};
}

Status send_frame(int socket, std::string_view data, std::span<const int> fds) {
  if (data.size() > UINT32_MAX) return fail_errno(EMSGSIZE);
  std::string bytes;
  bytes.reserve(data.size() + 4);
  for (unsigned shift = 0; shift < 32; shift += 8)
    bytes += static_cast<char>(data.size() >> shift & 0xff);
  bytes += data;
  std::string_view rest = bytes;
  while (!rest.empty()) {
    size_t n = TRY(send_some(socket, rest, fds));
    rest.remove_prefix(n);
    fds = {};
  }
  return {};
}

Result<Frame> recv_frame(int socket, size_t limit) {
  Frame frame;
  std::array<char, 4> head{};
  TRY(recv_exactly(socket, head, frame.fds));
  size_t size = 0;
  for (size_t i = 0; i < head.size(); ++i)
    size |= static_cast<size_t>(static_cast<unsigned char>(head[i])) << 8 * i;
  if (size > limit) return fail_errno(EMSGSIZE);
  frame.data.resize(size);
  TRY(recv_exactly(socket, frame.data, frame.fds));
  return frame;
}

Status send_message(int socket, std::string_view data,
                    std::span<const int> fds) {
  TRY(send_some(socket, data, fds));
  return {};
}

Result<Frame> recv_message(int socket, size_t limit) {
  Frame frame;
  // Not cleared: most messages are far smaller, and each page of it that is
  // touched is a fault.
  auto buffer = std::make_unique_for_overwrite<char[]>(limit);
  int flags = 0;
  size_t n =
      TRY(recv_some(socket, std::span(buffer.get(), limit), frame.fds, flags));
  if ((flags & MSG_TRUNC) != 0) return fail_errno(EMSGSIZE);
  frame.data.assign(buffer.get(), n);
  return frame;
}

}  // namespace stoplog
