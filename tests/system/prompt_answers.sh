#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A command asks a slow terminal for a report and ends; what the terminal says
# then is no answer to a question of stoplog's, nor is what was typed before it
# could be read. What is typed after it is.
# ctest: timeout 300
. "$(dirname "$0")/lib.sh" || exit 1
needs jq python3
needs_fuse

cat >"$T/slow.py" <<'PY'
# slow.py ANSWER TYPED PROMPT CMD...: a terminal that is 0.8 s away. It answers
# ESC [ c with ANSWER, once, and then types TYPED at the question PROMPT.
import os, pty, select, sys, time
answer, typed, prompt = (a.encode().decode("unicode_escape").encode("latin1")
                         for a in sys.argv[1:4])
pid, fd = pty.fork()
if pid == 0:
    os.environ.update(TERM="xterm-256color", LC_ALL="C.UTF-8")
    os.execvp(sys.argv[4], sys.argv[4:])
ASKED = {b"\x1b[c": answer, b"\x1b[5n": b"\x1b[0n"}
seen = {question: 0 for question in ASKED}
screen, queue, asked = b"", [], 0
end = time.time() + 60
while time.time() < end:
    while queue and queue[0][0] <= time.time():
        os.write(fd, queue.pop(0)[1])
    if not select.select([fd], [], [], 0.02)[0]:
        continue
    try:
        data = os.read(fd, 65536)
    except OSError:
        data = b""
    if not data:
        break
    screen += data
    for question, reply in ASKED.items():
        for _ in range(screen.count(question) - seen[question]):
            queue.append((time.time() + 0.8, reply))
        seen[question] = screen.count(question)
    for _ in range(screen.count(prompt) - asked):
        queue.append((time.time() + 2.5, typed))
    asked = screen.count(prompt)
    queue.sort(key=lambda entry: entry[0])
else:
    os.kill(pid, 9)
    sys.stderr.write("no end: " + repr(screen[-2000:]))
    sys.exit(1)
sys.stdout.buffer.write(screen)
_, status = os.waitpid(pid, 0)
PY

decision() { sl status --json | jq -r '.changes[0].decision'; }
ask="printf '\\033[c'"

# try NAME ANSWER TYPED PROMPT COMMAND: after a command that asked.
try() {
  echo "  $1"
  workspace "$T/w-$RANDOM$RANDOM"
  python3 "$T/slow.py" "$2" "$3" "$4" sh -c \
    "'$STOPLOG' run --quiet -- sh -c \"echo new >added; $ask\"; '$STOPLOG' $5" >"$T/screen"
}

# The end of an answer whose beginning was thrown away with the command.
try 'a torn answer' 'y\n' 'n\n' '[y/N]' 'commit -a'
test ! -e added || fail 'an answer of the terminal committed'
same none "$(decision)" 'an answer of the terminal decided'

try 'what is typed' '\x1b[?62c' 'y\n' '[y/N]' 'commit -a'
same new "$(cat added)" 'it was typed, and not heard'

try 'a sequence and a line' '\x1b[?62c' '\x1b[99;5~y\n' '[y/N]' 'commit -a'
test ! -e added || fail 'a line with a sequence in it committed'
same 3 "$(grep -o '\[y/N\]' "$T/screen" | wc -l)" 'not asked again'

try 'approve -p' 'y\n' 'q\n' ']?' 'approve -p'
same none "$(decision)" 'an answer of the terminal approved'
