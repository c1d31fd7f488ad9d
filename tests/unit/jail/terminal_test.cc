// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <pty.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/fd.h"
#include "catch_shim.h"
#include "jail/relay.h"
#include "jail/tty.h"

using namespace stoplog;
using namespace stoplog::jail;

namespace {

struct PtyPair {
  Fd master, slave;
  PtyPair() {
    int a = -1, b = -1;
    REQUIRE(::openpty(&a, &b, nullptr, nullptr, nullptr) == 0);
    master = Fd(a);
    slave = Fd(b);
  }
};

bool echoes(int fd) {
  termios modes{};
  REQUIRE(::tcgetattr(fd, &modes) == 0);
  return (modes.c_lflag & ECHO) != 0;
}

}  // namespace

TEST_CASE("a pty gets the shape of the caller's terminal") {
  PtyPair own, inside;
  const winsize size{
      .ws_row = 33, .ws_col = 101, .ws_xpixel = 0, .ws_ypixel = 0};
  REQUIRE(::ioctl(own.slave.get(), TIOCSWINSZ, &size) == 0);
  termios modes{};
  REQUIRE(::tcgetattr(own.slave.get(), &modes) == 0);
  modes.c_lflag &= ~static_cast<tcflag_t>(ECHO);
  modes.c_cc[VINTR] = 7;
  REQUIRE(::tcsetattr(own.slave.get(), TCSANOW, &modes) == 0);
  auto shape = terminal_shape(own.slave.get());
  REQUIRE(shape);
  REQUIRE(echoes(inside.slave.get()));
  REQUIRE(shape_pty(inside.master.get(), *shape));
  CHECK_FALSE(echoes(inside.slave.get()));
  termios got{};
  REQUIRE(::tcgetattr(inside.slave.get(), &got) == 0);
  CHECK(got.c_cc[VINTR] == 7);
  winsize seen{};
  REQUIRE(::ioctl(inside.slave.get(), TIOCGWINSZ, &seen) == 0);
  CHECK(seen.ws_row == 33);
  CHECK(seen.ws_col == 101);
}

TEST_CASE("bytes that are no shape are refused") {
  PtyPair inside;
  CHECK_FALSE(shape_pty(inside.master.get(), "abc"));
  CHECK_FALSE(shape_pty(inside.master.get(), std::string(1000, 'x')));
  CHECK_FALSE(terminal_shape(inside.master.get() + 1000));
}

TEST_CASE("taking the terminal leaves what the command set in its own") {
  PtyPair own, inside;
  termios modes{};
  REQUIRE(::tcgetattr(inside.slave.get(), &modes) == 0);
  ::cfmakeraw(&modes);
  REQUIRE(::tcsetattr(inside.slave.get(), TCSANOW, &modes) == 0);
  {
    auto taken = Terminal::take(own.slave.get(), inside.master.get());
    REQUIRE(taken);
    CHECK_FALSE(echoes(inside.slave.get()));
    // Not our foreground: its modes are not ours to change.
    CHECK_FALSE(taken->taken());
  }
  CHECK_FALSE(echoes(inside.slave.get()));
  CHECK(echoes(own.slave.get()));
}
