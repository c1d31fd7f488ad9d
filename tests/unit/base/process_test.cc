// SPDX-License-Identifier: Apache-2.0
// Child, the process calls and unix sockets.
#include <poll.h>
#include <sched.h>
#include <unistd.h>

#include <csignal>

#include "base/child.h"
#include "base/proc_stat.h"
#include "base/sys_file.h"
#include "base/sys_process.h"
#include "base/unix_socket.h"
#include "catch_shim.h"
#include "scratch.h"

using namespace stoplog;

namespace {

// What `script` printed, run by sh with only `env` set.
std::string output_of(const std::string& script, SpawnSpec spec = {}) {
  sys::Pipe pipe = sys::pipe().value();
  spec.argv = {"/bin/sh", "-c", script};
  spec.fds.push_back({pipe.write.get(), 1});
  Child child = Child::spawn(spec).value();
  pipe.write.reset();
  std::string out = sys::read_all(pipe.read.get(), 1 << 20).value();
  CHECK(child.wait()->ok());
  return out;
}

}  // namespace

TEST_CASE("Child runs a program and reports how it ended") {
  auto run = [](const char* script) {
    return Child::spawn({.argv = {"sh", "-c", script}})->wait().value();
  };
  CHECK(run("exit 3").code == 3);
  CHECK(run("kill -TERM $$").signal == SIGTERM);
  CHECK(run("kill -TERM $$").shell_code() == 143);
  CHECK(run("true").ok());
}

TEST_CASE("Child fails when there is nothing to run") {
  auto missing = Child::spawn({.argv = {"no-such-program-anywhere"}});
  REQUIRE_FALSE(missing);
  CHECK(missing.error().err() == ENOENT);
  auto directory = Child::spawn({.argv = {"/tmp"}});
  REQUIRE_FALSE(directory);
  CHECK(directory.error().err() == EACCES);
  CHECK_FALSE(Child::spawn({}));
}

TEST_CASE("Child inherits the fds it was given and no others") {
  Fd leak(::dup(0));  // without O_CLOEXEC
  // sh itself opens none; the glob lists what it has (and the directory).
  CHECK(output_of("for f in /proc/$$/fd/*; do echo ${f##*/}; done | sort -n | "
                  "tr '\\n' ' '")
            .starts_with("0 1 2 "));
  sys::Pipe pipe = sys::pipe().value();
  REQUIRE(sys::write_full(pipe.write.get(), std::string_view("hello")));
  pipe.write.reset();
  CHECK(output_of("cat <&7; test -e /proc/self/fd/" +
                      std::to_string(leak.get() == 7 ? 99 : leak.get()) +
                      " && echo leaked; true",
                  {.fds = {{pipe.read.get(), 7}}}) == "hello");
}

TEST_CASE("Child can swap two fds") {
  {
    sys::Pipe a = sys::pipe().value();
    sys::Pipe b = sys::pipe().value();
    REQUIRE(sys::write_full(a.write.get(), std::string_view("A")));
    REQUIRE(sys::write_full(b.write.get(), std::string_view("B")));
    a.write.reset();
    b.write.reset();
    int x = a.read.get();
    int y = b.read.get();
    CHECK(output_of(fmt::format("cat <&{} ; cat <&{}", x, y),
                    {.fds = {{x, y}, {y, x}}}) == "BA");
  }
}

TEST_CASE("Child takes environment and working directory") {
  Fd root = sys::openat(AT_FDCWD, "/usr", O_PATH | O_DIRECTORY).value();
  SpawnSpec spec{.cwd = root.get()};
  spec.env = std::vector<std::string>{"X=1", "PATH=/usr/bin:/bin"};
  CHECK(output_of("echo $X $HOME $(pwd)", spec) == "1 /usr\n");
}

TEST_CASE("Child that is dropped is killed and reaped") {
  pid_t pid = 0;
  {
    Child child = Child::spawn({.argv = {"sleep", "1000"}}).value();
    pid = child.pid();
    CHECK_FALSE(child.try_wait().value().has_value());
    CHECK_FALSE(sys::wait_ready(child.pidfd(), POLLIN, 0).value());
  }
  CHECK(::kill(pid, 0) == -1);
}

TEST_CASE("a pidfd tells of the end and signals") {
  Child child = Child::spawn({.argv = {"sleep", "1000"}}).value();
  Fd other = sys::pidfd_open(child.pid()).value();
  REQUIRE(sys::pidfd_send_signal(other.get(), SIGINT));
  CHECK(sys::wait_ready(child.pidfd(), POLLIN, 10'000).value());
  CHECK(child.wait()->signal == SIGINT);
}

TEST_CASE("frames carry bytes and fds between sockets") {
  SocketPair pair = socket_pair(SOCK_STREAM).value();
  sys::Pipe pipe = sys::pipe().value();
  std::string large(300'000, 'x');
  Child helper = Child::spawn({.argv = {"true"}}).value();
  int fds[] = {pipe.read.get()};
  REQUIRE(send_frame(pair.first.get(), "hello", fds));
  Frame frame = recv_frame(pair.second.get(), 100).value();
  CHECK(frame.data == "hello");
  REQUIRE(frame.fds.size() == 1);
  REQUIRE(sys::write_full(pipe.write.get(), std::string_view("via")));
  pipe.write.reset();
  CHECK(sys::read_all(frame.fds[0].get(), 10).value() == "via");
  REQUIRE(send_frame(pair.first.get(), ""));
  CHECK(recv_frame(pair.second.get(), 0)->data.empty());
  REQUIRE(send_frame(pair.first.get(), "too long"));
  CHECK(recv_frame(pair.second.get(), 3).error().err() == EMSGSIZE);
  pair.first.reset();
  CHECK_FALSE(recv_frame(pair.second.get(), 100));
  CHECK(send_frame(pair.second.get(), "x").error().err() == EPIPE);
}

TEST_CASE("messages keep their bounds") {
  SocketPair pair = socket_pair(SOCK_SEQPACKET).value();
  REQUIRE(send_message(pair.first.get(), "one"));
  REQUIRE(send_message(pair.first.get(), "four"));
  CHECK(recv_message(pair.second.get(), 100)->data == "one");
  CHECK(recv_message(pair.second.get(), 2).error().err() == EMSGSIZE);
  pair.first.reset();
  CHECK(recv_message(pair.second.get(), 100)->data.empty());
}

TEST_CASE("a socket works in a directory deeper than sun_path") {
  Scratch scratch;
  std::string deep(200, 'd');
  REQUIRE(sys::mkdirat(scratch.fd(), deep, 0700));
  Fd dir = sys::openat(scratch.fd(), deep, O_RDONLY | O_DIRECTORY).value();
  CHECK(connect_unix(dir.get(), "control").error().err() == ENOENT);
  Fd listener = listen_unix(dir.get(), "control").value();
  CHECK((sys::statat(dir.get(), "control")->mode & 0777) == 0600);
  Fd client = connect_unix(dir.get(), "control").value();
  Fd server = accept_unix(listener.get()).value();
  Peer peer = peer_of(server.get()).value();
  CHECK(peer.uid == ::getuid());
  CHECK(peer.pid == ::getpid());
  listener = listen_unix(dir.get(), "control").value();  // a stale one goes
  CHECK_FALSE(listen_unix(dir.get(), std::string(100, 'n')));
}

TEST_CASE("random bytes differ") {
  uint64_t a[2] = {0, 0};
  REQUIRE(sys::getrandom(std::as_writable_bytes(std::span(a))));
  CHECK(a[0] != a[1]);
}

TEST_CASE("the state of a process is read") {
  CHECK(proc_state("/proc/self/stat") == 'R');
  Child child = Child::spawn({.argv = {"sleep", "60"}}).value();
  std::string file = fmt::format("/proc/{}/stat", child.pid());
  REQUIRE(child.kill(SIGSTOP));
  while (proc_state(file) != 'T') ::sched_yield();
  REQUIRE(child.kill(SIGKILL));
  REQUIRE(child.wait());
  CHECK(proc_state(file) == '\0');
}
