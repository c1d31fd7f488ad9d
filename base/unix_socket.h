// SPDX-License-Identifier: Apache-2.0
// Unix sockets with fds and credentials.
//
//   Fd server = TRY(listen_unix(dir.get(), "control"));        // 0600
//   Fd client = TRY(connect_unix(dir.get(), "control"));
//   Peer who = TRY(peer_of(server_end)); if (who.uid != ::getuid()) ...
//   TRY(send_frame(client.get(), json, fds));
//   Frame frame = TRY(recv_frame(server_end, 16 << 20));
//
// Sockets are named beneath a directory fd, through /proc/self/fd, so the
// directory may lie deeper than the 108 bytes of sun_path; `name` is one short
// component. A frame is a length (u32, little-endian) and that many bytes over
// SOCK_STREAM, whole or an error; its fds travel with the first byte. A frame
// larger than `limit` is EMSGSIZE before memory is taken for it: the peer is
// not trusted. All calls block unless the socket was made non-blocking; EPIPE
// comes as an error, never as SIGPIPE. End of stream before a frame is
// ECONNRESET.
#pragma once

#include <sys/socket.h>
#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/fd.h"
#include "base/result.h"

namespace stoplog {

// A stale socket of that name is replaced; the caller holds whatever lock says
// that nobody listens on it.
Result<Fd> listen_unix(int dir, std::string_view name, int type = SOCK_STREAM);
// ENOENT: no such socket; ECONNREFUSED: nobody listens.
Result<Fd> connect_unix(int dir, std::string_view name, int type = SOCK_STREAM);
Result<Fd> accept_unix(int listener);

struct SocketPair {
  Fd first;
  Fd second;
};
Result<SocketPair> socket_pair(int type);

// Who is at the other end, as it was when it connected.
struct Peer {
  pid_t pid = 0;
  uid_t uid = 0;
  gid_t gid = 0;
};
Result<Peer> peer_of(int socket);

constexpr size_t kMaxFdsPerMessage = 16;

struct Frame {
  std::string data;
  std::vector<Fd> fds;
};
Status send_frame(int socket, std::string_view data,
                  std::span<const int> fds = {});
Result<Frame> recv_frame(int socket, size_t limit);

// One message of a SOCK_SEQPACKET or SOCK_DGRAM socket: `data` is not empty.
// On receipt, end of stream is an empty Frame, and a message larger than
// `limit` is EMSGSIZE.
Status send_message(int socket, std::string_view data,
                    std::span<const int> fds = {});
Result<Frame> recv_message(int socket, size_t limit);

}  // namespace stoplog
