// SPDX-License-Identifier: Apache-2.0
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <thread>

#include "base/sys_process.h"
#include "base/unix_socket.h"
#include "draft/client.h"
#include "draft/daemon.h"
#include "fixture.h"

using namespace stoplog;
using namespace stoplog::draft;

namespace {

// A core that runs nothing: a command "ends" when it is signalled, and answers
// what it was told on its stdout.
class FakeCore final : public DaemonCore {
 public:
  FakeCore() : event_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}
  Result<RunStarted> run(const RunRequest& request, std::vector<Fd> stdio,
                         Teller tell) override {
    if (waiting_) return fail_errno(EBUSY, "the tree changes beneath it");
    if (request.argv[0] == "refuse")
      return std::unexpected(
          Error(Code::kUnsupported, "no walls").with_hint("buy some"));
    std::string text = request.argv.back();
    RunStarted started;
    if (request.tty_streams != 0)
      started.terminal = sys::dup(event_.get()).value();
    if (stdio[1])
      (void)sys::write_full(stdio[1].get(),
                            text.substr(0, 10) + std::to_string(text.size()));
    commands_.push_back({.command = ++last_, .argv = request.argv});
    started.command = last_;
    if (request.argv[0] == "at once") {
      commands_.pop_back();
      RunEvent event{.command = last_};
      event.outcome.exit = 3;
      event.told = tell(event);
      push(event);
    }
    return started;
  }
  Status signal(uint32_t command, int signal) override {
    if (std::erase_if(commands_,
                      [&](auto& c) { return c.command == command; }) == 0)
      return fail_errno(ESRCH);
    RunEvent event{.command = command};
    event.outcome.signal = signal;
    push(event);
    return {};
  }
  Status kill(uint32_t command) override { return signal(command, SIGKILL); }
  Status over_output(uint32_t command, uint64_t) override {
    return kill(command);
  }
  std::vector<RunningCommand> running() const override { return commands_; }
  Status settle() override { return {}; }
  Result<GcDone> gc(const Gc& how) override {
    return GcDone{.marks = how.max_age.value_or(0), .bytes = 7};
  }
  Result<fs::Mark> barrier() override {
    asked_ = true;
    return fs::Mark{.id = 7, .kind = fs::MarkKind::kBarrier, .position = 99};
  }
  Result<fs::Mark> snapshot(const std::string& name) override {
    if (name == "waits") TRY(wait_for_others());
    return fs::Mark{.id = 8, .name = name};
  }
  Result<fs::Mark> rollback(fs::Position to) override {
    if (to == 77) TRY(wait_for_others());
    return fs::Mark{.kind = fs::MarkKind::kRollback, .position = to};
  }
  Result<fs::Mark> commit_base(fs::Position,
                               const std::vector<fs::BaseChange>& changes,
                               const fs::ToldBy& told) override {
    return fs::Mark{.id = static_cast<uint32_t>(told.id),
                    .kind = fs::MarkKind::kCommit,
                    .position = changes.at(0).now->size,
                    .name = changes.at(0).path.str()};
  }
  std::vector<fs::Mark> marks() const override { return {fs::Mark{.id = 1}}; }
  Status fork_into(int, fs::Position) override { return {}; }
  Result<MountInfo> mount(const std::string& dir) override {
    mount_ = dir;
    return MountInfo{mount_};
  }
  Status unmount() override {
    mount_.clear();
    return {};
  }
  bool is_stale() const override { return false; }
  MountInfo mounted() const override { return {mount_}; }
  Status note(const std::string&, const std::string&) override { return {}; }
  void describe(DaemonStatus& status) const override {
    status.held_bytes = waiting_ ? 43 : 42;
  }
  int event_fd() const override { return event_.get(); }
  std::vector<RunEvent> take_events() override {
    uint64_t n = 0;
    (void)!::read(event_.get(), &n, sizeof n);
    return std::exchange(events_, {});
  }
  Status close() override { return {}; }

 private:
  // Until somebody else was answered.
  Status wait_for_others() {
    waiting_ = true;
    for (int i = 0; !asked_; ++i) {
      if (i == 20000) return fail_errno(ETIMEDOUT, "nobody was answered");
      ::usleep(1000);
    }
    waiting_ = false;
    return {};
  }
  void push(RunEvent event) {
    events_.push_back(std::move(event));
    uint64_t one = 1;
    (void)!::write(event_.get(), &one, sizeof one);
  }
  Fd event_;
  uint32_t last_ = 0;
  std::string mount_;
  std::vector<RunningCommand> commands_;
  std::vector<RunEvent> events_;
  std::atomic<bool> waiting_ = false, asked_ = false;
};

// A daemon in a process of its own, ended with the test.
struct Daemon {
  Daemon(Place& place, const std::string& id,
         std::chrono::milliseconds idle = std::chrono::minutes(1)) {
    sys::Pipe ready = sys::pipe().value();
    pid = ::fork();
    if (pid == 0) {
      ready.read.reset();
      Status end = run_daemon({.layout = place.layout,
                               .draft = id,
                               .ready_fd = ready.write.release(),
                               .idle = idle},
                              [](const CoreContext&) {
                                return Result<std::unique_ptr<DaemonCore>>(
                                    std::make_unique<FakeCore>());
                              });
      ::_exit(end ? 0 : 1);
    }
    ready.write.reset();
    said = sys::read_all(ready.read.get(), 1000).value();
  }
  ~Daemon() {
    if (pid > 0) ::kill(pid, SIGKILL);
    wait();
  }
  int wait() {
    int status = -1;
    if (pid > 0) ::waitpid(pid, &status, 0);
    pid = -1;
    return status;
  }
  pid_t pid = -1;
  std::string said;
};

struct ControlPlace : Place {
  ControlPlace() : draft(store().create({.workspace = workspace()}).value()) {}
  Client connect() {
    auto client = Client::connect(layout, draft.id);
    REQUIRE(client);
    REQUIRE(*client);
    return std::move(**client);
  }
  Draft draft;
};

}  // namespace

TEST_CASE("a run is started, told of and ended over the control socket") {
  ControlPlace place;
  CHECK_FALSE(Client::connect(place.layout, place.draft.id).value());
  Daemon daemon(place, place.draft.id);
  REQUIRE(daemon.said == "ok\n");
  Client client = place.connect();
  CHECK(client.daemon().draft == place.draft.id);
  CHECK(client.daemon().pid == daemon.pid);
  CHECK_FALSE(client.daemon().busy);

  sys::Pipe out = sys::pipe().value();
  int fds[3] = {out.read.get(), out.write.get(), out.write.get()};
  RunRequest request;
  // Larger than a packet: travels in a memfd.
  request.argv = {"x", std::string(3u << 20, 'a')};
  request.limits.memory = {.value = 1u << 30, .asked = true};
  auto started = client.run(request, fds);
  REQUIRE(started);
  CHECK(started->command == 1);
  char text[32] = {};
  CHECK(::read(out.read.get(), text, sizeof text) == 17);
  CHECK(std::string(text) == "aaaaaaaaaa3145728");
  CHECK(place.connect().daemon().busy);
  CHECK(client.running()->size() == 1);
  REQUIRE(client.signal(1, SIGINT));
  CHECK_FALSE(client.signal(1, SIGINT));
  auto event = client.next_event();
  REQUIRE(event);
  CHECK(event->kind == RunEventKind::kEnded);
  CHECK(event->outcome.signal == SIGINT);

  request.argv = {"on a terminal"};
  request.tty_streams = 5;
  CHECK_FALSE(client.run(request, fds));
  auto on_terminal = client.run(request, std::span(fds).first(1));
  REQUIRE(on_terminal);
  CHECK(on_terminal->terminal);
  request.tty_streams = 0;

  request.argv = {"refuse"};
  auto refused = client.run(request, fds);
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code() == Code::kUnsupported);
  CHECK(refused.error().text() == "no walls");
  CHECK(refused.error().hint() == "buy some");
}

TEST_CASE("a command sent along with the hello is run where it suits alone") {
  ControlPlace place;
  sys::Pipe out = sys::pipe().value();
  int fds[3] = {out.read.get(), out.write.get(), out.write.get()};
  const RunRequest request{.argv = {"x"}};
  auto at_once = [&](const Shape& shape) {
    return Client::run_at_once(place.layout, place.draft.id, shape, request,
                               fds);
  };
  CHECK_FALSE(at_once({}).value());  // nobody is there
  Daemon daemon(place, place.draft.id);
  Shape other;
  other.hide = {"secret"};
  CHECK_FALSE(at_once(other).value());
  CHECK(place.connect().running()->empty());
  auto started = at_once({});
  REQUIRE(started);
  REQUIRE(*started);
  CHECK((*started)->run.command == 1);
  CHECK((*started)->client.daemon().draft == place.draft.id);
  CHECK(place.connect().running()->size() == 1);
  REQUIRE((*started)->client.signal(1, SIGINT));
  CHECK((*started)->client.next_event()->outcome.signal == SIGINT);
}

TEST_CASE("an end that comes before the answer to the run is not lost") {
  ControlPlace place;
  Daemon daemon(place, place.draft.id);
  Client client = place.connect();
  sys::Pipe out = sys::pipe().value();
  int fds[3] = {out.read.get(), out.write.get(), out.write.get()};
  auto started = client.run({.argv = {"at once"}}, fds);
  REQUIRE(started);
  REQUIRE(client.has_event());
  auto event = client.next_event();
  REQUIRE(event);
  CHECK(event->command == started->command);
  CHECK(event->outcome.exit == 3);
  // Nor told twice: the next thing that comes is the next answer.
  CHECK(client.status());
  CHECK_FALSE(client.has_event());
}

TEST_CASE("a command ends when its client goes away") {
  ControlPlace place;
  Daemon daemon(place, place.draft.id);
  Client watcher = place.connect();
  {
    Client client = place.connect();
    int fds[3] = {0, 1, 2};
    Fd null = sys::openat(AT_FDCWD, "/dev/null", O_RDWR).value();
    fds[0] = fds[1] = fds[2] = null.get();
    REQUIRE(client.run({.argv = {"x"}}, fds));
    CHECK(watcher.running()->size() == 1);
  }
  for (int i = 0; i < 200 && !watcher.running()->empty(); ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  CHECK(watcher.running()->empty());
}

TEST_CASE("records of the tree travel unharmed") {
  ControlPlace place;
  Daemon daemon(place, place.draft.id);
  Client client = place.connect();
  CHECK(client.settle());
  CHECK(client.gc({.max_age = 3, .max_bytes = {}})->marks == 3);
  CHECK(client.barrier()->position == 99);
  CHECK(client.snapshot("a b\xff")->name == "a b\xff");
  CHECK(client.rollback(1234567890123)->position == 1234567890123);
  fs::BaseChange change;
  change.path = RelPath::parse("a/b").value();
  change.now = sys::Stat{.size = 77};
  auto told = client.commit_base(5, {change}, {.id = 4711, .since = {}});
  CHECK(told->position == 77);
  CHECK(told->id == 4711);
  CHECK(client.marks()->size() == 1);
  CHECK(client.status()->held_bytes == 42);
  CHECK(client.mount("/x")->path == "/x");
  CHECK(client.status()->mount == "/x");
  CHECK(client.unmount());
  CHECK(client.note("n", "t"));
  CHECK_FALSE(client.note("../n", "t"));
}

TEST_CASE("a snapshot that takes its time holds nobody else up") {
  ControlPlace place;
  Daemon daemon(place, place.draft.id);
  Client one = place.connect();
  Client other = place.connect();
  Result<fs::Mark> made = fs::Mark{};
  std::thread waits([&] { made = one.snapshot("waits"); });
  while (other.status()->held_bytes != 43) std::this_thread::yield();
  CHECK(other.barrier()->position == 99);
  waits.join();
  if (!made) FAIL(made.error().text());
  CHECK(made->name == "waits");
}

TEST_CASE("a rollback holds up those alone who want to start a command") {
  ControlPlace place;
  Daemon daemon(place, place.draft.id);
  Client one = place.connect();
  Client other = place.connect();
  Client third = place.connect();
  Result<fs::Mark> made = fs::Mark{};
  std::thread waits([&] { made = one.rollback(77); });
  while (other.status()->held_bytes != 43) std::this_thread::yield();
  sys::Pipe out = sys::pipe().value();
  int fds[3] = {out.read.get(), out.write.get(), out.write.get()};
  RunRequest request;
  request.argv = {"x"};
  Result<RunStarted> started = fail_errno(EINVAL);
  std::thread runs([&] { started = third.run(request, fds); });
  // Time for it to be asked; whoever started it then would be refused.
  for (int i = 0; i < 50; ++i) {
    REQUIRE(other.status());
    ::usleep(1000);
  }
  CHECK(other.barrier()->position == 99);
  waits.join();
  runs.join();
  if (!made) FAIL(made.error().text());
  CHECK(made->position == 77);
  if (!started) FAIL(started.error().text());
  CHECK(other.running()->size() == 1);
}

TEST_CASE("hostile bytes cost their sender the connection and nobody else") {
  ControlPlace place;
  Daemon daemon(place, place.draft.id);
  Client good = place.connect();
  Fd dir = sys::openat(AT_FDCWD, place.layout.run(place.draft.id),
                       O_PATH | O_DIRECTORY)
               .value();
  auto attack = [&](std::string bytes, std::vector<int> fds = {}) {
    Fd raw = connect_unix(dir.get(), kSocketFile, SOCK_SEQPACKET).value();
    REQUIRE(send_message(raw.get(), bytes, fds));
    // An error or the end, never silence.
    auto reply = receive_op(raw.get());
    if (reply && *reply) CHECK((*reply)->op == Op::kError);
    CHECK(good.status());
  };
  attack("x");
  attack(std::string(17, '\0'));
  attack(std::string(60000, '\xff'));
  attack("SLOG" + std::string(13, '\xff'));
  // A run before the hello, an unknown op, a count that lies, a false memfd.
  auto head = [](Op op, uint32_t length, char outside) {
    std::string h("SLOG\x01\x00", 6);
    h += static_cast<char>(op);
    h += std::string(5, '\0');
    for (int i = 0; i < 4; ++i) h += static_cast<char>(length >> (8 * i));
    return h + outside;
  };
  attack(head(Op::kRun, 0, 0));
  attack(head(Op::kHello, 4, 0) + "\xff\xff\xff\xff");
  attack(head(Op::kHello, 4, 1));
  Fd null = sys::openat(AT_FDCWD, "/dev/null", O_RDWR).value();
  attack(head(Op::kHello, 4, 1), {null.get()});
  attack(head(Op::kHello, 4, 7));
  CHECK(good.status()->clients >= 1);
}

TEST_CASE("only one daemon serves a draft and a dead one is no obstacle") {
  ControlPlace place;
  {
    Daemon first(place, place.draft.id);
    REQUIRE(first.said == "ok\n");
    CHECK(DraftLock::is_held(place.layout, place.draft.id).value());
    ::kill(first.pid, SIGKILL);
    first.wait();
  }
  CHECK_FALSE(Client::connect(place.layout, place.draft.id).value());
  Daemon second(place, place.draft.id);
  REQUIRE(second.said == "ok\n");
  Client client = place.connect();
  REQUIRE(client.shutdown(place.layout, place.draft.id, false));
  CHECK(second.wait() == 0);
  CHECK_FALSE(Client::connect(place.layout, place.draft.id).value());
}

TEST_CASE("an idle daemon ends and one with a mount does not") {
  ControlPlace place;
  Daemon daemon(place, place.draft.id, std::chrono::milliseconds(50));
  REQUIRE(daemon.said == "ok\n");
  {
    Client client = place.connect();
    REQUIRE(client.mount("/x"));
  }
  std::this_thread::sleep_for(std::chrono::milliseconds(150));
  {
    Client client = place.connect();
    REQUIRE(client.unmount());
  }
  CHECK(daemon.wait() == 0);
}

TEST_CASE("a daemon that cannot start says why") {
  ControlPlace place;
  Daemon daemon(place, "zzzzzzzz");
  ErrorReply reply = decode<ErrorReply>(daemon.said).value();
  CHECK(reply.error().err() == ENOENT);
  auto started = Client::connect_or_start(
      place.layout, place.draft.id,
      {.program = "/bin/false", .patience = std::chrono::seconds(2)});
  REQUIRE_FALSE(started);
  CHECK(started.error().text().find("ended at once") != std::string::npos);
}
