// SPDX-License-Identifier: Apache-2.0
#include "draft/client.h"

#include <sys/file.h>
#include <unistd.h>

#include <thread>
#include <utility>

#include "base/sys_file.h"
#include "base/unix_socket.h"
#include "draft/spawn.h"
#include "draft/store.h"

namespace stoplog::draft {
namespace {

using SteadyClock = std::chrono::steady_clock;

bool is_absent(const Error& error) {
  int err = error.err();
  return err == ENOENT || err == ECONNREFUSED || err == ENOTDIR;
}

Result<Fd> connect_in(const std::string& run) {
  Fd dir = TRY(sys::openat(AT_FDCWD, run, O_PATH | O_DIRECTORY | O_NOFOLLOW));
  if (TRY(sys::fstat(dir.get())).uid != ::geteuid()) return fail_errno(ENOENT);
  return connect_unix(dir.get(), kSocketFile, SOCK_SEQPACKET);
}

Result<Fd> connect_to(const Layout& layout, const std::string& id) {
  const std::string run = layout.run(id);
  auto here = connect_in(run);
  if (here || !is_absent(here.error())) return here;
  // It may have been started with another XDG_RUNTIME_DIR: a session's, where a
  // cron job, `su` or a container's shell has none.
  auto told = sys::readlinkat(AT_FDCWD, layout.draft(id) + "/" + kServedAtLink);
  if (!told || *told == run) return here;
  auto there = connect_in(*told);
  return there ? std::move(there) : std::move(here);
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

Error other_version() {
  return Error(Code::kUnsupported,
               "another version of stoplog serves this draft, and is at work")
      .with_hint(
          "wait until what it runs has ended, or end it with `stoplog stop`; a "
          "view that it shows goes with it");
}

Error moved_away() {
  return Error(Code::kUnsupported,
               "the workspace was replaced by another directory while the "
               "draft is at work over the old one")
      .with_hint(
          "wait until what runs has ended, or end it with `stoplog stop`; "
          "`stoplog unmount` a view of it");
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

// One client at a time starts the daemon: a second one would wait for the lock
// that the first one keeps. False: it is another's turn, who starts it too, or
// writes without one; or a daemon is about to leave.
Result<bool> start_in_turn(const Layout& layout, const std::string& id,
                           const StartOptions& options) {
  Fd turn = TRY(sys::openat(AT_FDCWD, layout.draft(id) + "/" + kStartLockFile,
                            O_RDWR | O_CREAT, 0600));
  if (auto mine = sys::flock(turn.get(), LOCK_EX | LOCK_NB); !mine) {
    if (mine.error().err() == EWOULDBLOCK) return false;
    return std::unexpected(std::move(mine.error()));
  }
  if (TRY(DraftLock::is_held(layout, id))) return false;
  TRY(start_daemon(layout, id, options));
  return true;
}

}  // namespace

bool went_away(const Error& error) {
  return went_away_before_it_read(error) || error.err() == ECONNABORTED;
}

// A socket that is closed over a packet that nobody read resets the sender's
// (unix(7)); one that was read and not answered is an end of file.
bool went_away_before_it_read(const Error& error) {
  return error.err() == EPIPE || error.err() == ECONNRESET;
}

Status Client::send_away(const Layout& layout, const std::string& id,
                         OtherVersion other, Error busy) {
  auto socket = connect_to(layout, id);
  if (!socket) return {};  // it has left
  Client old(std::move(*socket));
  Status left = old.shutdown(layout, id, other == OtherVersion::kEnds);
  if (left || went_away(left.error())) return {};
  if (left.error().err() != EBUSY) return left;
  return std::unexpected(std::move(busy));
}

Result<std::optional<Client>> Client::connect(const Layout& layout,
                                              const std::string& id,
                                              OtherVersion other, Ahead ahead) {
  auto socket = connect_to(layout, id);
  if (!socket) {
    if (is_absent(socket.error())) return std::nullopt;
    return std::unexpected(
        std::move(socket).error().context("cannot reach the draft's daemon"));
  }
  Client client(std::move(*socket));
  auto hello = client.say_hello(ahead);
  if (hello && (!client.welcome_.stale || other == OtherVersion::kAsked))
    return client;
  // It went away between connect and hello: idle, or killed.
  if (!hello && went_away(hello.error())) return std::nullopt;
  if (!hello && hello.error().code() != Code::kUnsupported)
    return std::unexpected(std::move(hello).error());
  client.socket_.reset();
  TRY(send_away(layout, id, other, hello ? moved_away() : other_version()));
  return std::nullopt;
}

Result<Client> Client::connect_or_start(const Layout& layout,
                                        const std::string& id,
                                        const StartOptions& options) {
  auto deadline = SteadyClock::now() + options.patience;
  Error last(Code::kErrno, "the draft is in use", EBUSY);
  while (SteadyClock::now() < deadline) {
    if (auto client = TRY(connect(layout, id))) {
      const Welcome& daemon = client->daemon();
      const bool fits =
          !options.shape ||
          daemon.has_shape(options.shape->digest(), options.shape->mount);
      if (fits && (daemon.version == STOPLOG_VERSION || daemon.busy))
        return std::move(*client);
      if (!fits && daemon.busy) return std::unexpected(other_shape(daemon));
      // It may have got work since its welcome: then the next one says so.
      Status left = client->shutdown(layout, id, false);
      if (!left && left.error().err() != EBUSY && !went_away(left.error()))
        return std::unexpected(std::move(left.error()));
      continue;
    }
    auto started = start_in_turn(layout, id, options);
    if (!started) {
      last = std::move(started).error();
      // Readers, and who writes without a daemon, keep it waiting.
      if (last.err() == EWOULDBLOCK) continue;
      return std::unexpected(
          std::move(last).context("cannot start the draft's daemon"));
    }
    if (!*started) std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return std::unexpected(
      std::move(last).context("cannot reach the draft's daemon"));
}

Result<Client::Reply> Client::ask(Op op, const std::string& payload,
                                  std::span<const int> fds) {
  if (auto unread = std::exchange(ahead_, std::nullopt)) TRY(reply_to(*unread));
  uint32_t serial = ++serial_;
  TRY(send_op(socket_.get(), op, serial, payload, fds));
  return reply_to(serial);
}

Result<Client::Reply> Client::reply_to(uint32_t serial) {
  for (;;) {
    auto message = TRY(receive_op(socket_.get()));
    if (!message)
      return fail_errno(ECONNABORTED, "the draft's daemon went away");
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

Status Client::say_hello(Ahead ahead) {
  const uint32_t hello = ++serial_;
  TRY(send_op(fd(), Op::kHello, hello, encode(Hello{STOPLOG_VERSION}), {}));
  if (ahead == Ahead::kBarrier) {
    ahead_ = ++serial_;
    TRY(send_op(fd(), Op::kBarrier, *ahead_, encode(Empty{}), {}));
  }
  welcome_ = TRY(decode<Welcome>(TRY(reply_to(hello)).payload));
  return {};
}

Result<RunStarted> Client::run_started(Reply reply) {
  RunStarted started = TRY(decode<RunStarted>(reply.payload));
  if (!reply.fds.empty()) started.terminal = std::move(reply.fds.front());
  return started;
}

Result<RunStarted> Client::run(const RunRequest& record,
                               std::span<const int> stdio) {
  return run_started(TRY(ask(Op::kRun, encode(record), stdio)));
}

Result<std::optional<Client::Started>> Client::run_at_once(
    const Layout& layout, const std::string& id, const Shape& shape,
    RunRequest record, std::span<const int> stdio) {
  auto socket = connect_to(layout, id);
  if (!socket) return std::nullopt;  // connect() says why
  Client client(std::move(*socket));
  record.only_shape = shape.digest();
  const uint32_t hello = ++client.serial_, run = ++client.serial_;
  const int fd = client.fd();
  Status sent =
      send_op(fd, Op::kHello, hello, encode(Hello{STOPLOG_VERSION}), {});
  if (sent) sent = send_op(fd, Op::kRun, run, encode(record), stdio);
  if (!sent && went_away(sent.error())) return std::nullopt;
  TRY(std::move(sent));
  // It reads the second one after it has answered the first.
  auto welcomed = client.reply_to(hello);
  if (!welcomed && (went_away(welcomed.error()) ||
                    welcomed.error().code() == Code::kUnsupported))
    return std::nullopt;
  client.welcome_ = TRY(decode<Welcome>(TRY(std::move(welcomed)).payload));
  auto started = client.reply_to(run);
  if (!started && (went_away_before_it_read(started.error()) ||
                   started.error().err() == ESTALE))
    return std::nullopt;
  RunStarted told = TRY(run_started(TRY(std::move(started))));
  return Started{std::move(client), std::move(told)};
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
  if (auto asked = std::exchange(ahead_, std::nullopt))
    return decode<fs::Mark>(TRY(reply_to(*asked)).payload);
  return request<fs::Mark>(Op::kBarrier, Empty{});
}
Result<fs::Mark> Client::snapshot(const std::string& name) {
  return request<fs::Mark>(Op::kSnapshot, Text{name});
}
Result<fs::Mark> Client::rollback(fs::Position to) {
  return request<fs::Mark>(Op::kRollback, Rollback{to});
}
Result<fs::Mark> Client::commit_base(fs::Position reviewed,
                                     std::vector<fs::BaseChange> changes,
                                     const fs::ToldBy& told) {
  return request<fs::Mark>(
      Op::kCommitBase,
      CommitBase{reviewed, std::move(changes), told.id, told.since});
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
