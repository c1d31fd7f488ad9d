# SPDX-License-Identifier: Apache-2.0
# terminal.py CMD... : a person at a terminal. CMD is the program that runs
# "-- COMMAND" in a jail. Each scenario types what a person would and looks at
# the screen; exits 1 with the screen when one fails.
import fcntl
import json
import os
import pty
import re
import select
import shutil
import signal
import struct
import subprocess
import sys
import termios
import time

RUN = sys.argv[1:]
PATIENCE = 60


class Terminal:
    def __init__(self, argv, rows=33, columns=101):
        self.screen = ""
        self.seen = 0
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.environ["TERM"] = "xterm"
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
        if pattern.startswith("^"):
            # Or after what a shell writes before it runs a command.
            pattern = r"(?:^|(?<=\r))" + pattern[1:]
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

    def sees(self, pattern, seconds):
        end = time.time() + seconds
        while time.time() < end:
            found = re.compile(pattern, re.M).search(self.screen, self.seen)
            if found:
                self.seen = found.end()
                return True
            self.read(0.1)
        return False

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


# A job that says when it has the terminal: a key typed earlier would reach the
# shell, which ignores it. No shell script: dash loses a Ctrl-C that comes while
# it executes the last command of a line, and hangs in vfork(2) when a Ctrl-Z
# stops the child before it executes; outside of a jail too.
# The SIGCONT is waited for, not handled: a handler that is due just before
# pause() is called would not run.
PROGRAM = ('import signal as s;s.signal(s.SIGINT,s.SIG_DFL);c={s.SIGCONT};'
           's.pthread_sigmask(s.SIG_BLOCK,c);print("u""p",flush=True);'
           '[print("wo""ke",flush=True) for _ in iter(lambda:s.sigwait(c),0)]')
JOB = "python3 -c '%s'" % PROGRAM


def shell_inside():
    t = Terminal(RUN + ["--", "bash", "--norc", "-i"])
    t.expect(r"\$ ")
    t.type("echo [$(tty)] [$(stty size)] $((6*7))\r")
    t.expect(r"\[/dev/pts/\d+\] \[33 101\] 42")
    t.type(JOB + "\r")
    t.expect("^up")
    t.type("\x1a")
    t.expect("Stopped")
    t.type("jobs; echo ma''rk\r")
    t.expect("Stopped.*python3 -c")
    t.expect("^mark")
    t.type("fg\r")
    t.expect("^woke")
    t.type("\x03")
    t.expect(r"\$ ")
    t.type("echo code=$?\r")
    t.expect(r"^code=130")
    # Not before the prompt: readline reads the size and writes it back when it
    # takes the terminal, and a new one in between is lost; outside too.
    t.expect(r"\$ ")
    t.size(50, 120)
    t.type("stty size; echo en''d\r")
    t.expect("^50 120")
    t.expect("^end")
    t.type("exit 7\r")
    code = t.end()
    if code != 7:
        t.fail("exit %d, not 7" % code)


# Many times over: a size and a key that come close together must not be seen
# in the other order.
SIZES = ('import os,tty;tty.setraw(0);print("re""ady",flush=True);'
         '[print("<%d %d>"%(os.get_terminal_size(0)[::-1]),flush=True)'
         ' for _ in iter(lambda:os.read(0,1),b"q")]')


def size_before_key():
    t = Terminal(RUN + ["--", "python3", "-c", SIZES])
    t.expect("ready")
    for i in range(400):
        t.size(20 + i % 30, 80 + i % 7)
        t.type("x")
        seen = t.expect(r"<\d+ \d+>").group(0)
        if seen != "<%d %d>" % (20 + i % 30, 80 + i % 7):
            t.fail("the key came before the size, at %d: %s" % (i, seen))
    t.type("q")
    t.end()


def controlling_terminal():
    t = Terminal(RUN + ["--", "sh", "-c",
                        "echo hello >/dev/tty; ps -o tty= -p $$ || true"])
    t.expect("hello")
    t.end()


def interrupt():
    t = Terminal(RUN + ["--", "python3", "-c", PROGRAM])
    t.expect("up")
    t.type("\x03")
    code = t.end()
    if code != 130:
        t.fail("exit %d, not 130" % code)


# An interactive shell outside, whose job the run is.
def outer_shell():
    t = Terminal(["bash", "--norc", "-i"])
    t.expect(r"[$#] ")
    return t


def run_line(command, options=()):
    words = RUN + list(options) + ["--"]
    return " ".join("'%s'" % word for word in words) + " " + command + "\r"


def leave(t, code):
    t.expect(r"[$#] ")
    t.type("echo code=$?\r")
    t.expect(r"^code=%d\b" % code)
    if not t.canonical() and "icanon" not in stty(t):
        t.fail("the terminal is left raw")
    t.type("exit 0\r")
    t.end()


# As commands see it: the shell's own line editing is raw too.
def stty(t):
    t.type("stty -a | tr ';' '\\n' | grep -o '[-]*icanon'\r")
    return t.expect(r"^-?icanon").group(0)


def stop_and_resume():
    t = outer_shell()
    t.type(run_line(JOB))
    t.expect("^up")
    if t.canonical():
        t.fail("the terminal is not raw while a command runs")
    t.type("\x1a")
    t.expect("Stopped")
    t.expect(r"[$#] ")
    if stty(t) != "icanon":
        t.fail("the terminal is raw while the command is stopped")
    t.size(20, 70)
    t.type("fg\r")
    t.expect("^woke")
    t.type("\x03")
    leave(t, 130)


# The terminal is as it was after a death of whatever kind.
def ended_by_time():
    t = outer_shell()
    t.type(run_line("sh -c 'stty raw -echo; echo u\"\"p; sleep 1000'",
                    os.environ["TIME_LIMIT"].split()))
    t.expect("up")
    leave(t, 124)


def ended_by_signal():
    t = outer_shell()
    t.type(run_line("sh -c 'stty raw -echo; echo u\"\"p; kill -9 $$'"))
    t.expect("up")
    leave(t, 137)


def daemon_killed():
    if "--workspace" not in RUN:
        return
    t = outer_shell()
    t.type(run_line("sh -c 'stty raw -echo; echo u\"\"p; sleep 1000'"))
    t.expect("up")
    drafts = json.loads(subprocess.run(
        [RUN[0], "--workspace", RUN[RUN.index("--workspace") + 1], "drafts",
         "--json"], check=True, capture_output=True).stdout)
    for draft in drafts["drafts"]:
        if draft["daemon"]:
            os.kill(draft["daemon"], signal.SIGKILL)
    leave(t, 125)


def have(program):
    if shutil.which(program):
        return True
    print("    no %s here" % program)
    return False


def vim():
    if not have("vim"):
        return
    t = outer_shell()
    t.type(run_line("vim -u NONE -N -i NONE typed.txt"))
    t.expect(r"\[New\]")
    t.type("ihello\x1b:echo 'lines='.&lines.' columns='.&columns\r")
    t.expect("lines=33 columns=101")
    # vim misses a signal that comes right before it waits for a key, on any
    # terminal, and hears the next one. Two sizes at once are one signal, or
    # none when the second is what it was before.
    painted = r"\[39;1H"
    for _ in range(5):
        t.size(40, 90)
        if t.sees(painted, 4):
            break
        t.size(40, 91)
        t.sees(painted, 4)
    else:
        t.fail("not painted anew")
    t.type(":echo 'lines='.&lines.' columns='.&columns\r")
    t.expect("lines=40 columns=90")
    t.type("\x1a")
    t.expect("Stopped")
    t.expect(r"[$#] ")
    t.type("fg\r")
    t.expect("hello")
    t.type(":wq\r")
    t.expect("written")
    leave(t, 0)
    t = Terminal(RUN + ["--", "cat", "typed.txt"])
    t.expect("^hello")
    t.end()


def less():
    if not have("less"):
        return
    t = Terminal(RUN + ["--", "sh", "-c", "seq 1000 >numbers; less numbers"])
    t.expect(r"\b32\r?\n")  # one line of 33 is the prompt
    t.type(" ")
    t.expect(r"\b64\r?\n")
    t.type("/77$\r")
    t.expect(r"\b78\r?\n")
    t.type("G")
    t.expect(r"\b1000\b")
    t.type("q")
    if t.end() != 0:
        t.fail("less")


def htop():
    if not have("htop"):
        return
    t = Terminal(RUN + ["--", "htop"])
    t.expect("0:00.*htop")
    t.expect("F10")
    t.type("q")
    if t.end() != 0:
        t.fail("htop")
    if re.search(r"python3|terminal\.py", t.screen):
        t.fail("htop shows processes of the host")


# Killed with -9, the guardian puts the terminal's modes back. Not as the leader
# of the session, whose death takes the terminal from everybody, and beneath a
# shell that does not do it itself.
def killed():
    t = Terminal(["sh", "-c", "\"$@\" -- sh -c 'echo up; sleep 1000'; "
                  "echo en''d; exec sleep 1000", "x"] + RUN)
    t.expect("up")
    if t.canonical():
        t.fail("not raw")
    with open("/proc/%d/task/%d/children" % (t.pid, t.pid)) as f:
        os.kill(int(f.read().split()[0]), signal.SIGKILL)
    t.expect("end")
    end = time.time() + PATIENCE
    while not t.canonical() and time.time() < end:
        time.sleep(0.05)
    if not t.canonical():
        t.fail("the terminal stays raw after kill -9")
    os.kill(t.pid, signal.SIGKILL)
    t.end()


# Output to a pipe, keyboard at the terminal: each stream is what it was.
def mixed():
    t = Terminal(["bash", "--norc", "-c",
                  '"$@" -- sh -c \'test -t 0 && echo in; test -t 1 || echo out'
                  '; test -t 2 && echo err\' | tr a-z A-Z', "x"] + RUN)
    t.expect("IN")
    t.expect("OUT")
    t.expect("ERR")
    t.end()


for scenario in (shell_inside, size_before_key, controlling_terminal, interrupt,
                 stop_and_resume, ended_by_time, ended_by_signal,
                 daemon_killed, killed, mixed, vim, less, htop):
    print("   ", scenario.__name__, flush=True)
    scenario()
