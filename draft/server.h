// SPDX-License-Identifier: Apache-2.0
// The daemon's side of the control socket: one thread, one poll loop, any
// number of clients.
//
//   Server server(std::move(listener), core, {.draft = id});
//   Status end = server.serve();    // until shutdown, idle or a signal
//
// A client must be this user (SO_PEERCRED) and must say Hello first. A
// malformed message costs its sender the connection and nobody else anything.
// Sends never block: what a client does not take is queued up to 1 MiB, then
// it is dropped. A client that goes away takes its commands with it.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <chrono>
#include <deque>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "base/fd.h"
#include "base/result.h"
#include "draft/daemon_core.h"
#include "draft/protocol.h"

namespace stoplog::draft {

struct ServerOptions {
  std::string draft;    // id
  std::string shape{};  // digest, told in the welcome
  std::chrono::milliseconds idle = std::chrono::minutes(30);
  int stop_fd = -1;  // readable: end (a signalfd); borrowed
  uid_t uid = 0;     // the only user served
};

class Server {
 public:
  Server(Fd listener, DaemonCore& core, ServerOptions options);

  // Runs until told to stop. The listener is closed when it returns.
  Status serve();

 private:
  struct Outgoing {
    Op op = Op::kError;
    uint32_t serial = 0;
    std::string payload;
    Fd fd;  // travels with it
  };
  // What a request is answered with.
  struct Answer {
    std::string payload;
    Fd fd = Fd();
  };
  struct Client {
    uint64_t id = 0;
    Fd socket;
    std::shared_ptr<Fd> direct;  // a copy for other threads, once it runs
    bool welcomed = false;
    std::string version;           // as its hello told
    std::set<uint32_t> commands;   // started by it and not ended
    std::vector<Message> waiting;  // runs, for a rollback to end
    std::deque<Outgoing> queue;
    size_t queued = 0;
    bool dead = false;
  };

  void accept_clients();
  void receive(Client& client);
  void handle(Client& client, Message message);
  Result<Answer> answer(Client& client, Message& message);
  Result<std::string> answer_plain(const Message& message);
  Result<Answer> answer_run(Client& client, Message& message);
  Result<std::string> answer_stop(const Stop& stop);
  Result<std::string> answer_shutdown(const Shutdown& shutdown);
  bool suits(const Client& client, const std::string& shape) const;
  Welcome welcome() const;
  DaemonStatus status() const;
  bool busy() const;
  bool rolls_back() const;
  void send(Client& client, Outgoing message);
  void flush(Client& client);
  void deliver_events();
  // What copies files, holds commands still or reads a whole history may take
  // minutes: each such request has a thread of its own.
  void start_slow(Client& client, Message message);
  void deliver_slow();
  void end_slow();
  void reap();
  void note_activity();
  int timeout_ms() const;

  Fd listener_;
  DaemonCore& core_;
  ServerOptions options_;
  std::vector<std::unique_ptr<Client>> clients_;
  bool stopping_ = false;
  uint64_t last_client_ = 0;

  struct Slow {
    uint64_t client = 0;
    Message request{};
    Result<std::string> result = std::string();
    std::atomic<bool> done = false;
    std::thread thread{};
  };
  std::vector<std::unique_ptr<Slow>> slow_;  // the loop's alone
  Fd slow_done_;  // an eventfd, written to by those threads
  std::chrono::steady_clock::time_point idle_since_;
};

}  // namespace stoplog::draft
