#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A review of so much that it takes a while to look at: the screen is there
# meanwhile and tells how far it is, can be left, and fills in by itself.
. "$(dirname "$0")/lib.sh" || exit 1
needs git python3 strace
needs_fuse

workspace
sl run --quiet -- sh -c 'for i in $(seq 400); do echo $i >name$i; done'
# Each read delayed, so that it takes a while on any machine.
cat >"$T/drive.py" <<'PY'
import os, pty, re, struct, sys, fcntl, termios
program, key = sys.argv[1:]
pid, terminal = pty.fork()
if pid == 0:
    os.environ.update(TERM="xterm", LANG="C.UTF-8")
    os.execvp("strace", ["strace", "-f", "-o", "/dev/null", "-e", "trace=pread64",
                         "-e", "inject=pread64:delay_exit=8000", program, "review"])
fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
said, pressed = b"", False
while True:
    try:
        piece = os.read(terminal, 65536)
    except OSError:
        break
    if not piece: break
    said += piece
    ready = b"looking at" in said if key == "early" or key == "stop" else b"name1" in said
    if ready and not pressed:
        os.write(terminal, b"\x03" if key == "stop" else b"q")
        pressed = True
code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
assert b"\x1b[?1049h" in said and said.rstrip().count(b"\x1b[?1049l") == 1, said[-300:]
waiting = re.search(rb"looking at \d+ of \d+ changes", said)
assert waiting, said[:600]
if key == "late":
    assert said.index(b"name1") > waiting.start()
    assert b"400 undecided" in said, said[-300:]
else:
    assert b"name1" not in said
assert code == {"late": 0, "early": 0, "stop": 130}[key], (code, said[-300:])
PY
python3 "$T/drive.py" "$STOPLOG" late
python3 "$T/drive.py" "$STOPLOG" early
python3 "$T/drive.py" "$STOPLOG" stop
# What is quick has no screen to wait on, and an empty draft has none at all.
sl discard -y >/dev/null 2>&1
sl run --quiet --new -- true
python3 - "$STOPLOG" <<'PY'
import os, pty, sys
pid, terminal = pty.fork()
if pid == 0:
    os.environ["TERM"] = "xterm"
    os.execv(sys.argv[1], [sys.argv[1], "review"])
said = b""
while True:
    try:
        piece = os.read(terminal, 65536)
    except OSError:
        break
    if not piece: break
    said += piece
assert os.waitpid(pid, 0)[1] == 0
assert b"nothing to review" in said and b"\x1b[?1049h" not in said, said
PY
