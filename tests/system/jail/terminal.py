# SPDX-License-Identifier: Apache-2.0
# terminal.py CMD... : a person at a terminal. CMD is the program that runs
# "-- COMMAND" in a jail. Each scenario types what a person would and looks at
# the screen; exits 1 with the screen when one fails.
import fcntl
import os
import pty
import re
import select
import signal
import struct
import sys
import termios
import time

RUN = sys.argv[1:]
PATIENCE = 20


class Terminal:
    def __init__(self, argv, rows=33, columns=101):
        self.screen = ""
        self.seen = 0
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.execvp(argv[0], argv)
        self.size(rows, columns)

    def size(self, rows, columns):
        fcntl.ioctl(self.fd, termios.TIOCSWINSZ,
                    struct.pack("HHHH", rows, columns, 0, 0))

    def type(self, text):
        os.write(self.fd, text.encode())

    def read(self, timeout):
        if not select.select([self.fd], [], [], timeout)[0]:
            return True
        try:
            data = os.read(self.fd, 65536)
        except OSError:
            return False
        self.screen += data.decode(errors="replace")
        return bool(data)

    # Waits until the pattern appears after what was waited for before.
    def expect(self, pattern):
        end = time.time() + PATIENCE
        while True:
            found = re.compile(pattern, re.M).search(self.screen, self.seen)
            if found:
                self.seen = found.end()
                return found
            if time.time() > end or not self.read(0.1):
                if re.compile(pattern, re.M).search(self.screen, self.seen):
                    continue
                self.fail("no «%s»" % pattern)

    def fail(self, why):
        print("FAILED: %s\n%s" % (why, self.screen))
        os.kill(self.pid, signal.SIGKILL)
        sys.exit(1)

    def end(self):
        finish = time.time() + PATIENCE
        while time.time() < finish:
            self.read(0.05)
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                return os.waitstatus_to_exitcode(status)
        self.fail("it does not end")

    def canonical(self):
        return bool(termios.tcgetattr(self.fd)[3] & termios.ICANON)


def shell_inside():
    t = Terminal(RUN + ["--", "bash", "--norc", "-i"])
    t.expect(r"\$ ")
    t.type("echo [$(tty)] [$(stty size)] $((6*7))\r")
    t.expect(r"\[/dev/pts/\d+\] \[33 101\] 42")
    t.type("sleep 1000\r")
    time.sleep(0.3)
    t.type("\x1a")
    t.expect("Stopped")
    t.type("jobs; echo ma''rk\r")
    t.expect("Stopped.*sleep 1000")
    t.expect("mark")
    t.type("fg\r")
    time.sleep(0.3)
    t.type("\x03")
    time.sleep(0.2)
    t.type("echo code=$?\r")
    t.expect(r"code=130")
    t.size(50, 120)
    time.sleep(0.2)
    t.type("stty size; echo en''d\r")
    t.expect("50 120")
    t.expect("end")
    t.type("exit 7\r")
    code = t.end()
    if code != 7:
        t.fail("exit %d, not 7" % code)


def controlling_terminal():
    t = Terminal(RUN + ["--", "sh", "-c",
                        "echo hello >/dev/tty; ps -o tty= -p $$ || true"])
    t.expect("hello")
    t.end()


def interrupt():
    t = Terminal(RUN + ["--", "sh", "-c", "echo up; sleep 1000"])
    t.expect("up")
    t.type("\x03")
    code = t.end()
    if code != 130:
        t.fail("exit %d, not 130" % code)


def stop_and_resume():
    t = Terminal(["bash", "--norc", "-i"])
    t.expect(r"[$#] ")
    line = " ".join("'%s'" % word for word in RUN)
    t.type(line + " -- sh -c 'echo u''p; sleep 3; echo wo''ke; sleep 1000'\r")
    t.expect("up")
    if t.canonical():
        t.fail("the terminal is not raw while a command runs")
    t.type("\x1a")
    t.expect("Stopped")
    t.expect(r"[$#] ")
    t.type("echo sh''ell\r")
    t.expect("shell")
    t.type("fg\r")
    t.expect("woke")
    t.type("\x03")
    t.expect(r"[$#] ")
    t.type("echo code=$?\r")
    t.expect("code=130")
    t.type("exit 0\r")
    t.end()


# Killed with -9, the guardian puts the terminal's modes back.
def killed():
    t = Terminal(RUN + ["--", "sh", "-c", "echo up; sleep 1000"])
    t.expect("up")
    end = time.time() + PATIENCE
    while t.canonical() and time.time() < end:
        time.sleep(0.05)
    if t.canonical():
        t.fail("not raw")
    # Keep the terminal alive beyond its leader to look at its modes.
    slave = os.open("/dev/pts/%d" % struct.unpack(
        "I", fcntl.ioctl(t.fd, 0x80045430, b"\0" * 4))[0], os.O_RDWR | os.O_NOCTTY)
    os.kill(t.pid, signal.SIGKILL)
    os.waitpid(t.pid, 0)
    while not t.canonical() and time.time() < end:
        time.sleep(0.05)
    os.close(slave)
    if not t.canonical():
        print("FAILED: the terminal stays raw after kill -9")
        sys.exit(1)


# Output to a pipe, keyboard at the terminal: each stream is what it was.
def mixed():
    t = Terminal(["bash", "--norc", "-c",
                  '"$@" -- sh -c \'test -t 0 && echo in; test -t 1 || echo out'
                  '; test -t 2 && echo err\' | tr a-z A-Z', "x"] + RUN)
    t.expect("IN")
    t.expect("OUT")
    t.expect("ERR")
    t.end()


for scenario in (shell_inside, controlling_terminal, interrupt,
                 stop_and_resume, killed, mixed):
    print("   ", scenario.__name__, flush=True)
    scenario()
