// SPDX-License-Identifier: Apache-2.0
#include "draft/reach.h"

#include <poll.h>

#include <atomic>
#include <functional>
#include <thread>

#include "base/sys_process.h"
#include "base/unix_socket.h"
#include "fixture.h"

using namespace stoplog;
using namespace stoplog::draft;

namespace {

// Holds the draft's lock and answers at its socket what it is told to.
class ScriptedDaemon {
 public:
  using Answer = std::function<Message(const Message&)>;
  ScriptedDaemon(const Layout& layout, const std::string& id)
      : layout_(layout), id_(id) {
    lock_ = DraftLock::take(layout, id, LockMode::kExclusive).value();
  }
  void listen(Answer answer) {
    REQUIRE(make_private_dir(layout_.run(id_)));
    Fd dir =
        sys::openat(AT_FDCWD, layout_.run(id_), O_RDONLY | O_DIRECTORY).value();
    listener_ = listen_unix(dir.get(), kSocketFile, SOCK_SEQPACKET).value();
    thread_ =
        std::thread([this, answer = std::move(answer)] { serve(answer); });
  }
  ~ScriptedDaemon() {
    stop_.write.reset();
    if (thread_.joinable()) thread_.join();
  }

 private:
  void serve(const Answer& answer) {
    while (sys::wait_ready(stop_.read.get(), POLLIN, 1).value() == false) {
      pollfd one{listener_.get(), POLLIN, 0};
      if (::poll(&one, 1, 10) <= 0) continue;
      Fd client = accept_unix(listener_.get()).value();
      for (;;) {
        auto asked = receive_op(client.get());
        if (!asked || !*asked) break;
        Message reply = answer(**asked);
        (void)send_op(client.get(), reply.op, (*asked)->serial, reply.payload);
      }
    }
  }
  Layout layout_;
  std::string id_;
  std::optional<DraftLock> lock_;
  Fd listener_;
  sys::Pipe stop_ = sys::pipe().value();
  std::thread thread_;
};

Message reply(Op op, std::string payload) {
  Message message;
  message.op = op;
  message.payload = std::move(payload);
  return message;
}

struct ReachPlace : Place {
  ReachPlace() : draft(store().create({.workspace = workspace()}).value()) {}
  Draft draft;
};

}  // namespace

TEST_CASE("a daemon that comes up while its lock is waited for is used") {
  ReachPlace place;
  ScriptedDaemon daemon(place.layout, place.draft.id);
  // It has the lock and does not listen yet. Should it do so before we look,
  // nothing is tried here; it cannot fail for that.
  std::thread later([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    daemon.listen([&](const Message&) {
      return reply(Op::kReply, encode(Welcome{.version = STOPLOG_VERSION,
                                              .draft = place.draft.id,
                                              .shape = "",
                                              .mount = ""}));
    });
  });
  for (LockMode mode : {LockMode::kShared, LockMode::kExclusive}) {
    auto reached =
        reach(place.layout, place.draft.id, mode, std::chrono::minutes(10));
    REQUIRE(reached);
    CHECK(reached->daemon);
    CHECK_FALSE(reached->lock);
  }
  later.join();
}

TEST_CASE("without a daemon a draft is reached by its lock") {
  ReachPlace place;
  auto reached = reach(place.layout, place.draft.id, LockMode::kExclusive);
  REQUIRE(reached);
  CHECK_FALSE(reached->daemon);
  REQUIRE(reached->lock);
  CHECK(DraftLock::is_held(place.layout, place.draft.id).value());
  auto second = reach(place.layout, place.draft.id, LockMode::kShared,
                      std::chrono::milliseconds(20));
  REQUIRE_FALSE(second);
  CHECK(second.error().err() == EWOULDBLOCK);
}

TEST_CASE("a daemon of other settings that got work meanwhile is not used") {
  ReachPlace place;
  ScriptedDaemon daemon(place.layout, place.draft.id);
  std::atomic<bool> asked_to_leave = false;
  daemon.listen([&](const Message& asked) {
    if (asked.op == Op::kShutdown) {
      asked_to_leave = true;  // a command began since the welcome
      return reply(Op::kError, encode(ErrorReply::from(Error(EBUSY))));
    }
    return reply(Op::kReply, encode(Welcome{.version = STOPLOG_VERSION,
                                            .draft = place.draft.id,
                                            .busy = asked_to_leave,
                                            .shape = "other walls",
                                            .mount = ""}));
  });
  Shape shape;
  shape.mask = {"mine"};
  auto client = Client::connect_or_start(
      place.layout, place.draft.id, {.program = "/bin/false", .shape = shape});
  REQUIRE_FALSE(client);
  CHECK(asked_to_leave);
  CHECK(client.error().code() == Code::kUnsupported);
  CHECK(client.error().text().find("with other settings") != std::string::npos);
}

TEST_CASE("an idle daemon of another protocol is sent away by a mere look") {
  ReachPlace place;
  auto daemon = std::make_unique<ScriptedDaemon>(place.layout, place.draft.id);
  std::atomic<bool> busy = true, forced = false;
  daemon->listen([&](const Message& asked) {
    if (asked.op != Op::kShutdown)
      return reply(Op::kError,
                   encode(ErrorReply::from(
                       Error(Code::kUnsupported, "of another protocol"))));
    forced = decode<Shutdown>(asked.payload).value().force;
    if (busy && !forced)
      return reply(Op::kError, encode(ErrorReply::from(Error(EBUSY))));
    return reply(Op::kReply, encode(Empty{}));
  });
  auto stays = Client::connect(place.layout, place.draft.id);
  REQUIRE_FALSE(stays);
  CHECK(stays.error().code() == Code::kUnsupported);
  CHECK(stays.error().hint().find("stoplog stop") != std::string::npos);
  CHECK_FALSE(forced);
  busy = false;
  // It ends a moment after it said that it would.
  std::thread ends([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    daemon.reset();
  });
  auto gone = Client::connect(place.layout, place.draft.id);
  ends.join();
  REQUIRE(gone);
  CHECK_FALSE(*gone);
}

namespace {

// Welcomes, and gives each barrier a position of its own.
ScriptedDaemon::Answer barriers(const std::string& id,
                                std::atomic<uint64_t>& asked) {
  return [&asked, id](const Message& message) {
    if (message.op == Op::kBarrier)
      return reply(Op::kReply, encode(fs::Mark{.position = ++asked}));
    if (message.op == Op::kSettle) return reply(Op::kReply, encode(Empty{}));
    return reply(Op::kReply, encode(Welcome{.version = STOPLOG_VERSION,
                                            .draft = id,
                                            .shape = "",
                                            .mount = ""}));
  };
}

Result<Reached> reach_ahead(const ReachPlace& place) {
  return reach(place.layout, place.draft.id, LockMode::kShared,
               std::chrono::minutes(10), Ahead::kBarrier);
}

}  // namespace

TEST_CASE("a barrier that was asked for with the hello is taken once") {
  ReachPlace place;
  std::atomic<uint64_t> asked{0};
  ScriptedDaemon daemon(place.layout, place.draft.id);
  daemon.listen(barriers(place.draft.id, asked));
  auto reached = reach_ahead(place);
  REQUIRE(reached);
  REQUIRE(reached->daemon);
  CHECK(reached->daemon->barrier().value().position == 1);
  CHECK(reached->daemon->barrier().value().position == 2);
}

TEST_CASE("a barrier from before another request is not taken for one of now") {
  ReachPlace place;
  std::atomic<uint64_t> asked{0};
  ScriptedDaemon daemon(place.layout, place.draft.id);
  daemon.listen(barriers(place.draft.id, asked));
  auto reached = reach_ahead(place);
  REQUIRE(reached);
  REQUIRE(reached->daemon);
  REQUIRE(reached->daemon->settle());
  CHECK(reached->daemon->barrier().value().position == 2);
}
