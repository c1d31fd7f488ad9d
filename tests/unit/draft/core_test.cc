// SPDX-License-Identifier: Apache-2.0
// The whole inner path for real: daemon, mount, jail, command, marks, ledger.
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/sys_process.h"
#include "catch_shim.h"
#include "draft/client.h"
#include "draft/daemon.h"
#include "draft/ledger.h"
#include "fixture.h"

using namespace stoplog;
using namespace stoplog::draft;

namespace {

struct LiveDraft : Place {
  explicit LiveDraft(Shape shape = {}) : shape_(std::move(shape)) {
    write("ws/lower.txt", "lower\n");
    draft = store().create({.workspace = workspace()}).value();
    start();
  }
  ~LiveDraft() { stop(); }

  void start() {
    sys::Pipe ready = sys::pipe().value();
    pid = ::fork();
    if (pid == 0) {
      ready.read.reset();
      Status end = run_daemon({.layout = layout,
                               .draft = draft.id,
                               .ready_fd = ready.write.release(),
                               .shape = shape_},
                              make_core);
      if (!end) fmt::print(stderr, "daemon: {}\n", end.error().text());
      ::_exit(end ? 0 : 1);
    }
    ready.write.reset();
    std::string said = sys::read_all(ready.read.get(), 1000).value();
    INFO(said);
    REQUIRE(said == "ok\n");
  }
  // SIGTERM is the orderly end.
  int stop(int signal = SIGTERM) {
    int status = -1;
    if (pid > 0) {
      ::kill(pid, signal);
      ::waitpid(pid, &status, 0);
    }
    pid = -1;
    return status;
  }

  struct Ran {
    std::string out;
    Outcome outcome;
  };
  Ran sh(const std::string& script, Limits limits = {}) {
    auto client = Client::connect(layout, draft.id).value();
    REQUIRE(client);
    sys::Pipe out = sys::pipe().value();
    Fd null = sys::openat(AT_FDCWD, "/dev/null", O_RDONLY).value();
    RunRequest request;
    request.argv = {"sh", "-c", script};
    request.limits = limits;
    int stdio[3] = {null.get(), out.write.get(), out.write.get()};
    auto started = client->run(request, stdio);
    if (!started) FAIL(started.error().text());
    out.write.reset();
    Ran ran;
    ran.out = sys::read_all(out.read.get(), 1u << 20).value();
    RunEvent event = client->next_event().value();
    REQUIRE(event.kind == RunEventKind::kEnded);
    ran.outcome = event.outcome;
    return ran;
  }

  Draft draft;
  pid_t pid = -1;

 private:
  Shape shape_;
};

}  // namespace

TEST_CASE("a command's writes are held and the real tree is untouched") {
  LiveDraft live;
  auto ran = live.sh(
      "cat lower.txt; echo new > made; echo more >> lower.txt; "
      "cat made lower.txt; pwd");
  CHECK(ran.outcome.exit == 0);
  CHECK(ran.out == "lower\nnew\nlower\nmore\n" + live.top + "/ws\n");
  CHECK(live.read("ws/lower.txt") == "lower\n");
  CHECK_FALSE(sys::statat(AT_FDCWD, live.top + "/ws/made"));
  // The next command finds it, and so does the next daemon.
  CHECK(live.sh("cat made").out == "new\n");
  CHECK(live.stop() == 0);
  live.start();
  CHECK(live.sh("cat made; tail -1 lower.txt").out == "new\nmore\n");
}

TEST_CASE("a daemon killed with -9 loses nothing that had returned") {
  LiveDraft live;
  CHECK(live.sh("echo kept > kept; echo home > ~/kept").outcome.exit == 0);
  live.stop(SIGKILL);
  live.start();
  CHECK(live.sh("cat kept ~/kept").out == "kept\nhome\n");
}

TEST_CASE(
    "nothing inside is root of the host and what it makes is the owner's") {
  LiveDraft live;
  auto ran =
      live.sh("id -u; echo x > owned; stat -c %u:%g owned lower.txt . ~");
  INFO(ran.out);
  CHECK(ran.out.substr(0, 2) != "0\n");
  std::string me = ran.out.substr(0, ran.out.find('\n'));
  std::string own = me + ":" + me + "\n";
  CHECK(ran.out == me + "\n" + own + own + own + own);
}

TEST_CASE("the timeline and the ledger know each command") {
  LiveDraft live;
  CHECK(live.sh("exit 3").outcome.exit == 3);
  auto killed = live.sh("kill -9 $$");
  CHECK(killed.outcome.signal == SIGKILL);
  auto client = Client::connect(live.layout, live.draft.id).value();
  auto marks = client->marks().value();
  // The daemon's own beginning is the first.
  REQUIRE(marks.size() == 5);
  CHECK(marks[0].kind == fs::MarkKind::kBarrier);
  CHECK(marks[4].command == 2);
  Ledger ledger = Ledger::open(live.layout, live.draft.id).value();
  auto entries = ledger.entries().value();
  REQUIRE(entries.size() == 2);
  CHECK(entries[0].integer("exit") == 3);
  CHECK(entries[1].integer("signal") == SIGKILL);
  CHECK(ledger.verify().value().ok);
}

TEST_CASE("a time limit ends a command that ignores signals") {
  LiveDraft live;
  Limits limits;
  limits.time_ms = {300, true};
  auto ran = live.sh("trap '' TERM INT HUP; sleep 100", limits);
  CHECK(ran.outcome.killed_by == "time");
  CHECK(ran.outcome.exit == 124);
}
