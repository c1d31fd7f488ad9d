// SPDX-License-Identifier: Apache-2.0
#include "draft/client.h"

#include <unistd.h>

#include <thread>

#include "base/sys_file.h"
#include "base/unix_socket.h"
#include "draft/spawn.h"
#include "draft/store.h"

namespace stoplog::draft {
namespace {

using SteadyClock = std::chrono::steady_clock;

Result<Fd> connect_to(const Layout& layout, const std::string& id) {
  Fd dir = TRY(sys::openat(AT_FDCWD, layout.run(id), O_PATH | O_DIRECTORY));
  return connect_unix(dir.get(), kSocketFile, SOCK_SEQPACKET);
}

// Waits until nobody holds the draft's lock, or the deadline.
bool wait_until_free(const Layout& layout, const std::string& id,
                     SteadyClock::time_point deadline) {
  while (SteadyClock::now() < deadline) {
    auto held = DraftLock::is_held(layout, id);
    if (held && !*held) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return false;
}

bool fits_shape(const Welcome& daemon, const std::optional<Shape>& wanted) {
  if (!wanted) return true;
  if (daemon.shape != wanted->digest()) return false;
  if (!wanted->mount.empty()) return daemon.mount == wanted->mount;
  // Of root's jail the files of a view that is shown have foreign owners.
  return ::geteuid() != 0 || daemon.mount.empty();
}

Error other_shape(const Welcome& daemon) {
  if (!daemon.mount.empty())
    return Error(Code::kUnsupported,
                 fmt::format("the draft is mounted at '{}'{}", daemon.mount,
                             ::geteuid() == 0
                                 ? ", where root's commands cannot be jailed"
                                 : " with other settings"))
        .with_hint("`stoplog unmount` first, or use another draft with -d");
  return Error(Code::kUnsupported,
               "a command runs in this draft with other settings (network, "
               "rules, binds or toolchains)")
      .with_hint(
          "wait for it, end it with `stoplog stop`, or use another draft "
          "with -d");
}

}  // namespace

Result<std::optional<Client>> Client::connect(const Layout& layout,
                                              const std::string& id) {
  auto socket = connect_to(layout, id);
  if (!socket) {
    int err = socket.error().err();
    if (err == ENOENT || err == ECONNREFUSED || err == ENOTDIR)
      return std::nullopt;
    return std::unexpected(
        std::move(socket).error().context("cannot reach the draft's daemon"));
  }
  Client client(std::move(*socket));
  auto hello = client.say_hello();
  if (!hello) {
    // It went away between connect and hello: idle, or killed.
    int err = hello.error().err();
    if (err == EPIPE || err == ECONNRESET) return std::nullopt;
    return std::unexpected(std::move(hello).error());
  }
  return client;
}

Result<Client> Client::connect_or_start(const Layout& layout,
                                        const std::string& id,
                                        const StartOptions& options) {
  auto deadline = SteadyClock::now() + options.patience;
  Error last(ETIMEDOUT);
  bool started_once = false;
  while (SteadyClock::now() < deadline) {
    auto client = connect(layout, id);
    if (!client) {
      // A daemon of another protocol: ask it to leave.
      if (client.error().code() != Code::kUnsupported)
        return std::unexpected(std::move(client).error());
      auto socket = connect_to(layout, id);
      if (socket) {
        Client old(std::move(*socket));
        auto left = old.shutdown(layout, id, false);
        if (!left)
          return std::unexpected(
              std::move(client.error())
                  .with_hint("it is at work: end that first (`stoplog stop`), "
                             "then run this again"));
      }
      continue;
    }
    if (*client) {
      const Welcome& daemon = (**client).daemon();
      const bool fits = fits_shape(daemon, options.shape);
      if (fits && (daemon.version == STOPLOG_VERSION || daemon.busy))
        return std::move(**client);
      if (!fits && daemon.busy) return std::unexpected(other_shape(daemon));
      if (!(**client).shutdown(layout, id, false)) return std::move(**client);
      continue;
    }
    auto held = DraftLock::is_held(layout, id);
    if (held && *held) {
      // Somebody else starts it, or commits without one: its turn first.
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
      last = Error(Code::kErrno, "the draft is in use", EBUSY);
      continue;
    }
    auto started = start_daemon(layout, id, options);
    if (!started) {
      last = std::move(started).error();
      // Lost the race for the lock to another starter: look again.
      if (last.err() == EWOULDBLOCK && !started_once) continue;
      return std::unexpected(
          std::move(last).context("cannot start the draft's daemon"));
    }
    started_once = true;
  }
  return std::unexpected(
      std::move(last).context("cannot reach the draft's daemon"));
}

Result<Client::Reply> Client::ask(Op op, const std::string& payload,
                                  std::span<const int> fds) {
  uint32_t serial = ++serial_;
  TRY(send_op(socket_.get(), op, serial, payload, fds));
  for (;;) {
    auto message = TRY(receive_op(socket_.get()));
    if (!message) return fail_errno(EPIPE, "the draft's daemon went away");
    if (message->op == Op::kEvent) {
      events_.push_back(TRY(decode<RunEvent>(message->payload)));
      continue;
    }
    if (message->op == Op::kError)
      return std::unexpected(TRY(decode<ErrorReply>(message->payload)).error());
    if (message->op == Op::kReply && message->serial == serial)
      return Reply{std::move(message->payload), std::move(message->fds)};
    return fail(Code::kInternal, "unexpected message from the daemon");
  }
}

template <typename Answer, typename Request>
Result<Answer> Client::request(Op op, const Request& record) {
  return decode<Answer>(TRY(ask(op, encode(record))).payload);
}

Status Client::say_hello() {
  welcome_ = TRY(request<Welcome>(Op::kHello, Hello{STOPLOG_VERSION}));
  return {};
}

Result<RunStarted> Client::run(const RunRequest& record,
                               std::span<const int> stdio) {
  Reply reply = TRY(ask(Op::kRun, encode(record), stdio));
  RunStarted started = TRY(decode<RunStarted>(reply.payload));
  if (!reply.fds.empty()) started.terminal = std::move(reply.fds.front());
  return started;
}

Status Client::signal(uint32_t command, int signal) {
  TRY(request<Empty>(Op::kSignal, Signal{command, signal}));
  return {};
}

Status Client::over_output(uint32_t command, uint64_t measured) {
  TRY(request<Empty>(Op::kOverOutput, OverOutput{command, measured}));
  return {};
}

Result<RunEvent> Client::next_event() {
  if (!events_.empty()) {
    RunEvent event = std::move(events_.front());
    events_.pop_front();
    return event;
  }
  auto message = TRY(receive_op(socket_.get()));
  if (!message) return fail(Code::kInternal, "the draft's daemon went away");
  if (message->op != Op::kEvent)
    return fail(Code::kInternal, "unexpected message from the daemon");
  return decode<RunEvent>(message->payload);
}

Result<GcDone> Client::gc(const Gc& how) {
  return request<GcDone>(Op::kGc, how);
}

Status Client::settle() {
  TRY(request<Empty>(Op::kSettle, Empty{}));
  return {};
}

Result<fs::Mark> Client::barrier() {
  return request<fs::Mark>(Op::kBarrier, Empty{});
}
Result<fs::Mark> Client::snapshot(const std::string& name) {
  return request<fs::Mark>(Op::kSnapshot, Text{name});
}
Result<fs::Mark> Client::rollback(fs::Position to) {
  return request<fs::Mark>(Op::kRollback, Rollback{to});
}
Result<fs::Mark> Client::commit_base(fs::Position reviewed,
                                     std::vector<fs::BaseChange> changes) {
  return request<fs::Mark>(Op::kCommitBase,
                           CommitBase{reviewed, std::move(changes)});
}
Result<std::vector<fs::Mark>> Client::marks() {
  return TRY(request<MarkList>(Op::kMarks, Empty{})).marks;
}
Status Client::fork(const std::string& directory, fs::Position at) {
  // As an fd: by its path it would be of another mount in the daemon's
  // namespace, and nothing is linked across mounts.
  Fd dir = TRY(sys::openat(AT_FDCWD, directory, O_RDONLY | O_DIRECTORY));
  int fd = dir.get();
  TRY(ask(Op::kFork, encode(Fork{directory, at}), std::span(&fd, 1)));
  return {};
}
Result<MountInfo> Client::mount(const std::string& dir) {
  return request<MountInfo>(Op::kMount, Text{dir});
}
Status Client::unmount() {
  TRY(request<Empty>(Op::kUnmount, Empty{}));
  return {};
}
Result<std::vector<RunningCommand>> Client::running() {
  return TRY(request<ProcessList>(Op::kPs, Empty{})).commands;
}
Status Client::stop(uint32_t command) {
  TRY(request<Empty>(Op::kStop, Stop{command}));
  return {};
}
Status Client::note(const std::string& name, const std::string& text) {
  TRY(request<Empty>(Op::kNote, Note{name, text}));
  return {};
}
Result<DaemonStatus> Client::status() {
  return request<DaemonStatus>(Op::kStatus, Empty{});
}

Status Client::shutdown(const Layout& layout, const std::string& id,
                        bool force) {
  TRY(request<Empty>(Op::kShutdown, Shutdown{force}));
  socket_.reset();
  if (!wait_until_free(layout, id,
                       SteadyClock::now() + std::chrono::seconds(15)))
    return fail_errno(ETIMEDOUT, "the draft's daemon does not end");
  return {};
}

}  // namespace stoplog::draft
