// SPDX-License-Identifier: Apache-2.0
#include "draft/server.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "base/sys_file.h"
#include "base/sys_process.h"
#include "base/unix_socket.h"

namespace stoplog::draft {
namespace {

constexpr size_t kMaxQueued = 1u << 20;
constexpr size_t kMaxClients = 256;
constexpr size_t kMaxSlow = 16;  // beyond that they wait for one another

bool is_slow(Op op) {
  return op == Op::kSettle || op == Op::kSnapshot || op == Op::kGc ||
         op == Op::kFork || op == Op::kRollback;
}

template <typename T>
Result<std::string> encoded(Result<T> result) {
  if (!result) return std::unexpected(std::move(result).error());
  return encode(*result);
}

Result<std::string> encoded(Status status) {
  if (!status) return std::unexpected(std::move(status).error());
  return encode(Empty{});
}

}  // namespace

Server::Server(Fd listener, DaemonCore& core, ServerOptions options)
    : listener_(std::move(listener)),
      core_(core),
      options_(std::move(options)),
      idle_since_(std::chrono::steady_clock::now()) {}

Status Server::serve() {
  slow_done_ = Fd(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!slow_done_) return fail_errno(errno, "cannot make an eventfd");
  while (!stopping_) {
    std::vector<pollfd> fds;
    fds.push_back({listener_.get(), POLLIN, 0});
    fds.push_back({core_.event_fd(), POLLIN, 0});
    fds.push_back({options_.stop_fd, POLLIN, 0});
    fds.push_back({core_.life_fd(), POLLIN, 0});
    fds.push_back({slow_done_.get(), POLLIN, 0});
    for (auto& client : clients_) {
      short events = POLLIN;
      if (!client->queue.empty()) events |= POLLOUT;
      fds.push_back({client->socket.get(), events, 0});
    }
    int ready = ::poll(fds.data(), fds.size(), timeout_ms());
    if (ready < 0 && errno != EINTR) {
      int err = errno;
      end_slow();
      return fail_errno(err, "cannot poll");
    }
    if (ready < 0) continue;
    note_activity();
    if (ready == 0 && timeout_ms() == 0) break;  // idle long enough
    if (fds[2].revents != 0) break;
    if (fds[1].revents != 0) deliver_events();
    if (fds[3].revents != 0 && core_.running().empty()) break;
    if (fds[4].revents != 0) deliver_slow();
    for (size_t i = 5; i < fds.size(); ++i) {
      Client& client = *clients_[i - 5];
      if ((fds[i].revents & POLLOUT) != 0) flush(client);
      if ((fds[i].revents & (POLLIN | POLLHUP | POLLERR)) != 0) receive(client);
    }
    if (fds[0].revents != 0) accept_clients();
    reap();
  }
  end_slow();
  listener_.reset();
  clients_.clear();
  return {};
}

bool Server::busy() const {
  return !slow_.empty() || !core_.running().empty() ||
         !core_.mounted().path.empty();
}

void Server::note_activity() {
  if (!clients_.empty() || busy())
    idle_since_ = std::chrono::steady_clock::now();
}

int Server::timeout_ms() const {
  if (!clients_.empty() || busy()) return -1;
  auto left = std::chrono::ceil<std::chrono::milliseconds>(
      idle_since_ + options_.idle - std::chrono::steady_clock::now());
  return static_cast<int>(std::max<int64_t>(0, left.count()));
}

void Server::accept_clients() {
  for (;;) {
    auto socket = accept_unix(listener_.get());
    if (!socket) return;
    auto peer = peer_of(socket->get());
    // Another user is told nothing, not even that this is stoplog.
    if (!peer || peer->uid != options_.uid) continue;
    if (clients_.size() >= kMaxClients) continue;
    if (!sys::set_nonblocking(socket->get(), true)) continue;
    auto client = std::make_unique<Client>();
    client->id = ++last_client_;
    client->socket = std::move(*socket);
    clients_.push_back(std::move(client));
    receive(*clients_.back());  // its hello is often there already
  }
}

void Server::receive(Client& client) {
  if (client.dead) return;
  auto message = receive_op(client.socket.get());
  if (!message && message.error().err() == EAGAIN) return;
  if (!message) {
    ErrorReply reply = ErrorReply::from(message.error());
    send(client, {Op::kError, 0, encode(reply), Fd()});
    client.dead = true;
    return;
  }
  if (!*message) {
    client.dead = true;
    return;
  }
  handle(client, std::move(**message));
}

bool Server::rolls_back() const {
  return std::ranges::any_of(
      slow_, [](const auto& job) { return job->request.op == Op::kRollback; });
}

void Server::handle(Client& client, Message message) {
  // The tree changes beneath no command: who wants to start one waits.
  if (message.op == Op::kRun && client.welcomed && rolls_back()) {
    client.waiting.push_back(std::move(message));
    return;
  }
  if (is_slow(message.op) && client.welcomed && message.protocol == kProtocol &&
      slow_.size() < kMaxSlow) {
    start_slow(client, std::move(message));
    return;
  }
  auto reply = answer(client, message);
  if (reply) {
    send(client, {Op::kReply, message.serial, std::move(reply->payload),
                  std::move(reply->fd)});
    return;
  }
  send(client, {Op::kError, message.serial,
                encode(ErrorReply::from(reply.error())), Fd()});
  // Before the welcome nothing but a proper Hello is tolerated.
  if (!client.welcomed && message.op != Op::kHello) client.dead = true;
}

Result<Server::Answer> Server::answer(Client& client, Message& message) {
  if (message.op == Op::kShutdown)
    return Answer{TRY(answer_shutdown(TRY(decode<Shutdown>(message.payload))))};
  if (message.protocol != kProtocol)
    return fail(Code::kUnsupported,
                "the daemon of this draft is stoplog {} (protocol {}), the "
                "request of protocol {}",
                STOPLOG_VERSION, kProtocol, message.protocol);
  if (message.op == Op::kHello) {
    client.version = TRY(decode<Hello>(message.payload)).version;
    client.welcomed = true;
    return Answer{encode(welcome())};
  }
  if (!client.welcomed) return fail(Code::kInvalid, "hello expected");
  if (message.op == Op::kRun) return answer_run(client, message);
  return Answer{TRY(answer_plain(message))};
}

Result<std::string> Server::answer_plain(const Message& message) {
  const std::string& payload = message.payload;
  switch (message.op) {
    case Op::kSignal: {
      Signal s = TRY(decode<Signal>(payload));
      return encoded(core_.signal(s.command, s.signal));
    }
    case Op::kOverOutput: {
      OverOutput over = TRY(decode<OverOutput>(payload));
      return encoded(core_.over_output(over.command, over.measured));
    }
    case Op::kBarrier:
      TRY(decode<Empty>(payload));
      return encoded(core_.barrier());
    case Op::kSettle:
      TRY(decode<Empty>(payload));
      return encoded(core_.settle());
    case Op::kGc:
      return encoded(core_.gc(TRY(decode<Gc>(payload))));
    case Op::kSnapshot:
      return encoded(core_.snapshot(TRY(decode<Text>(payload)).text));
    case Op::kRollback:
      return encoded(core_.rollback(TRY(decode<Rollback>(payload)).to));
    case Op::kCommitBase: {
      CommitBase request = TRY(decode<CommitBase>(payload));
      return encoded(core_.commit_base(request.reviewed, request.changes,
                                       {request.id, request.since}));
    }
    case Op::kFork: {
      Fork fork = TRY(decode<Fork>(payload));
      if (message.fds.size() != 1)
        return fail(Code::kInvalid, "a fork needs a directory");
      return encoded(core_.fork_into(message.fds[0].get(), fork.at));
    }
    case Op::kMarks:
      TRY(decode<Empty>(payload));
      return encode(MarkList{core_.marks()});
    case Op::kMount:
      return encoded(core_.mount(TRY(decode<Text>(payload)).text));
    case Op::kUnmount:
      TRY(decode<Empty>(payload));
      return encoded(core_.unmount());
    case Op::kPs:
      TRY(decode<Empty>(payload));
      return encode(ProcessList{core_.running()});
    case Op::kStop:
      return answer_stop(TRY(decode<Stop>(payload)));
    case Op::kNote: {
      Note note = TRY(decode<Note>(payload));
      if (!is_valid_name(note.name))
        return fail(Code::kInvalid, "bad name of a note");
      return encoded(core_.note(note.name, note.text));
    }
    case Op::kStatus:
      TRY(decode<Empty>(payload));
      return encode(status());
    default:
      return fail(Code::kInvalid, "unknown request {}",
                  static_cast<unsigned>(message.op));
  }
}

Result<Server::Answer> Server::answer_run(Client& client, Message& message) {
  RunRequest request = TRY(decode<RunRequest>(message.payload));
  if (request.argv.empty()) return fail(Code::kInvalid, "no command to run");
  if (!request.only_shape.empty() && !suits(client, request.only_shape))
    return fail_errno(ESTALE, "this daemon will not do for the command");
  if (request.tty_streams > 7) return fail(Code::kInvalid, "bad stream mask");
  std::vector<Fd> stdio(3);
  size_t used = 0;
  for (unsigned i = 0; i < 3; ++i) {
    if ((request.tty_streams >> i & 1) != 0) continue;
    if (used == message.fds.size())
      return fail(Code::kInvalid, "a run needs a descriptor a stream");
    stdio[i] = std::move(message.fds[used++]);
  }
  if (used != message.fds.size())
    return fail(Code::kInvalid, "a run needs a descriptor a stream");
  if (!client.direct)
    client.direct = std::make_shared<Fd>(TRY(sys::dup(client.socket.get())));
  auto tell = [weak = std::weak_ptr(client.direct)](const RunEvent& event) {
    const auto socket = weak.lock();  // none: the client is gone
    return socket &&
           send_op(socket->get(), Op::kEvent, 0, encode(event)).has_value();
  };
  RunStarted started = TRY(core_.run(request, std::move(stdio), tell));
  client.commands.insert(started.command);
  Answer out{encode(started)};
  out.fd = std::move(started.terminal);
  return out;
}

Result<std::string> Server::answer_stop(const Stop& stop) {
  if (stop.command != 0) return encoded(core_.kill(stop.command));
  for (const RunningCommand& c : core_.running()) TRY(core_.kill(c.command));
  return encode(Empty{});
}

Result<std::string> Server::answer_shutdown(const Shutdown& shutdown) {
  if (busy() && !shutdown.force)
    return fail_errno(EBUSY, "the daemon is at work");
  for (const RunningCommand& c : core_.running()) (void)core_.kill(c.command);
  stopping_ = true;
  return encode(Empty{});
}

// As a client that had read the welcome first would decide.
bool Server::suits(const Client& client, const std::string& shape) const {
  const Welcome told = welcome();
  return !told.stale && told.has_shape(shape, "") &&
         (client.version == told.version || told.busy);
}

Welcome Server::welcome() const {
  return {STOPLOG_VERSION, options_.draft, static_cast<int32_t>(::getpid()),
          busy(),          options_.shape, core_.mounted().path,
          core_.is_stale()};
}

DaemonStatus Server::status() const {
  DaemonStatus out;
  out.pid = static_cast<int32_t>(::getpid());
  out.version = STOPLOG_VERSION;
  out.commands = static_cast<uint32_t>(core_.running().size());
  out.clients = static_cast<uint32_t>(clients_.size());
  out.mount = core_.mounted().path;
  core_.describe(out);
  return out;
}

void Server::send(Client& client, Outgoing message) {
  if (client.dead) return;
  client.queued += message.payload.size();
  client.queue.push_back(std::move(message));
  flush(client);
  // A client that asks and never reads would have us keep its answers for
  // ever. One large answer may always wait.
  if (client.queue.size() > 1 && client.queued > kMaxQueued) client.dead = true;
}

void Server::flush(Client& client) {
  while (!client.queue.empty() && !client.dead) {
    Outgoing& next = client.queue.front();
    int fd = next.fd.get();
    std::span<const int> fds(&fd, next.fd ? 1u : 0u);
    auto sent =
        send_op(client.socket.get(), next.op, next.serial, next.payload, fds);
    if (!sent && sent.error().err() == EAGAIN) return;
    if (!sent) {
      client.dead = true;
      return;
    }
    client.queued -= next.payload.size();
    client.queue.pop_front();
  }
}

void Server::deliver_events() {
  for (RunEvent& event : core_.take_events()) {
    for (auto& client : clients_) {
      if (!client->commands.contains(event.command)) continue;
      if (!event.told) send(*client, {Op::kEvent, 0, encode(event), Fd()});
      if (event.kind == RunEventKind::kEnded)
        client->commands.erase(event.command);
    }
  }
}

void Server::start_slow(Client& client, Message message) {
  auto job = std::make_unique<Slow>();
  job->client = client.id;
  job->request = std::move(message);
  job->thread = std::thread([this, job = job.get()] {
    job->result = answer_plain(job->request);
    job->done = true;
    (void)::eventfd_write(slow_done_.get(), 1);
  });
  slow_.push_back(std::move(job));
}

void Server::deliver_slow() {
  eventfd_t count = 0;
  (void)::eventfd_read(slow_done_.get(), &count);
  for (auto& job : slow_) {
    if (!job->done) continue;
    job->thread.join();
    for (auto& client : clients_) {
      if (client->id != job->client) continue;
      uint32_t serial = job->request.serial;
      if (job->result)
        send(*client, {Op::kReply, serial, std::move(*job->result), Fd()});
      else
        send(*client, {Op::kError, serial,
                       encode(ErrorReply::from(job->result.error())), Fd()});
    }
    job.reset();
  }
  std::erase(slow_, nullptr);
  if (rolls_back()) return;
  for (auto& client : clients_)
    for (Message& message : std::exchange(client->waiting, {}))
      if (!client->dead) handle(*client, std::move(message));
}

void Server::end_slow() {
  for (auto& job : slow_) job->thread.join();
  slow_.clear();
}

void Server::reap() {
  for (auto& client : clients_) {
    if (!client->dead) continue;
    for (uint32_t command : client->commands) (void)core_.kill(command);
  }
  std::erase_if(clients_, [](const auto& client) { return client->dead; });
}

}  // namespace stoplog::draft
