// SPDX-License-Identifier: Apache-2.0
// The CLI's side of the control socket.
//
//   Client c = TRY(Client::connect_or_start(layout, id, {.program = self}));
//   RunStarted s = TRY(c.run(request, stdio));
//   for (;;) { RunEvent e = TRY(c.next_event()); ... }
//
// connect() gives nullopt when no daemon lives; a socket left by a dead one
// counts as none, and so does a daemon of another protocol, or one whose
// workspace was replaced by another directory, which is asked to leave first:
// at work it stays, and that is kUnsupported. connect_or_start()
// starts one, waits until it is ready and reports its reason when it is not; an
// idle daemon of another version is replaced. Whoever needs the draft whether
// or not a daemon lives calls reach() (draft/reach.h). One thread; a request
// waits for its reply, events that come in between are kept.
#pragma once

#include <chrono>
#include <deque>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/fd.h"
#include "base/result.h"
#include "draft/layout.h"
#include "draft/protocol.h"
#include "draft/shape.h"
#include "fs/told.h"

namespace stoplog::draft {

struct StartOptions {
  // Run as `PROGRAM daemon --serve ID --ready-fd 3`.
  std::string program = "/proc/self/exe";
  std::vector<std::string> arguments{};  // more of them
  // What the daemon must be made of; unset: a living one will do. An idle
  // daemon of another shape is replaced, a busy one is kUnsupported.
  std::optional<Shape> shape{};
  std::chrono::milliseconds patience = std::chrono::seconds(20);
};

// What becomes of a daemon of another protocol, or over a directory that was
// replaced, that is at work. kAsked: of the second kind, it is the one that is
// wanted; of the first, as kStays.
enum class OtherVersion { kStays, kEnds, kAsked };

// What is asked for with the hello, one wait less. Any other request drops it.
enum class Ahead { kNothing, kBarrier };

// The daemon ended or was replaced while it was asked. `before_it_read`: what
// was asked did not happen and may be asked of another.
bool went_away(const Error& error);
bool went_away_before_it_read(const Error& error);

class Client {
 public:
  static Result<std::optional<Client>> connect(
      const Layout& layout, const std::string& id,
      OtherVersion other = OtherVersion::kStays, Ahead ahead = Ahead::kNothing);
  static Result<Client> connect_or_start(const Layout& layout,
                                         const std::string& id,
                                         const StartOptions& options = {});

  struct Started;
  // run() at a daemon that lives and suits, its welcome not waited for: one
  // round trip less. Nothing where there is no such daemon: then nothing was
  // run, and connect_or_start() has more patience.
  static Result<std::optional<Started>> run_at_once(const Layout& layout,
                                                    const std::string& id,
                                                    const Shape& shape,
                                                    RunRequest request,
                                                    std::span<const int> stdio);

  const Welcome& daemon() const { return welcome_; }
  int fd() const { return socket_.get(); }  // readable: next_event()

  // stdio: an fd for each stream that is not the jail's pty.
  Result<RunStarted> run(const RunRequest& request, std::span<const int> stdio);
  Status signal(uint32_t command, int signal);
  Status over_output(uint32_t command, uint64_t measured);
  // Blocks for the next event. A daemon that died is an error of kInternal.
  Result<RunEvent> next_event();
  bool has_event() const { return !events_.empty(); }

  // The one that connect() asked for ahead, or one of now.
  Result<fs::Mark> barrier();
  Status settle();
  Result<GcDone> gc(const Gc& how);
  Result<fs::Mark> snapshot(const std::string& name);
  Result<fs::Mark> rollback(fs::Position to);
  Result<fs::Mark> commit_base(fs::Position reviewed,
                               std::vector<fs::BaseChange> changes,
                               const fs::ToldBy& told);
  Result<std::vector<fs::Mark>> marks();
  Status fork(const std::string& directory, fs::Position at);
  Result<MountInfo> mount(const std::string& dir);
  Status unmount();
  Result<std::vector<RunningCommand>> running();
  Status stop(uint32_t command);  // 0: all
  Status note(const std::string& name, const std::string& text);
  Result<DaemonStatus> status();
  // The daemon ends; returns when its lock is free.
  Status shutdown(const Layout& layout, const std::string& id, bool force);

 private:
  explicit Client(Fd socket) : socket_(std::move(socket)) {}
  static Status send_away(const Layout& layout, const std::string& id,
                          OtherVersion other, Error busy);
  Status say_hello(Ahead ahead);
  struct Reply {
    std::string payload;
    std::vector<Fd> fds;
  };
  Result<Reply> ask(Op op, const std::string& payload,
                    std::span<const int> fds = {});
  Result<Reply> reply_to(uint32_t serial);
  static Result<RunStarted> run_started(Reply reply);
  template <typename Answer, typename Request>
  Result<Answer> request(Op op, const Request& record);

  Fd socket_;
  uint32_t serial_ = 0;
  std::optional<uint32_t> ahead_;  // a barrier whose answer is not read yet
  Welcome welcome_;
  std::deque<RunEvent> events_;
};

struct Client::Started {
  Client client;
  RunStarted run;
};

}  // namespace stoplog::draft
