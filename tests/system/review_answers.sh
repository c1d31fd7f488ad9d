#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A command asks the terminal for reports; its answers press no key in the
# review that follows, whenever they come, and the review's own keys still work.
# ctest: timeout 600
. "$(dirname "$0")/lib.sh" || exit 1
needs jq python3
needs_fuse

cat >"$T/answers.py" <<'PY'
# answers.py WHEN KEYS CMD...: a terminal that answers reports, `prompt`ly or
# once the review is `late` on screen, then types KEYS and waits for the end.
import os, pty, re, select, sys, time, fcntl, struct, termios
when, keys, argv = sys.argv[1], sys.argv[2], sys.argv[3:]
pid, fd = pty.fork()
if pid == 0:
    os.environ.update(TERM="xterm-256color", LC_ALL="C.UTF-8")
    os.execvp(argv[0], argv)
fcntl.ioctl(fd, termios.TIOCSWINSZ, struct.pack("HHHH", 30, 100, 0, 0))
ASKED = {b"\x1b[?25$p": b"\x1b[?25;1$y", b"\x1b[c": b"\x1b[?62;4c",
         b"\x1b]10;?\x1b\\": b"\x1b]10;rgb:aaaa/yyyy/cccc\x1b\\",
         b"\x1bP+q79\x1b\\": b"\x1bP0+ry\x1b\\", b"\x1b[5n": b"\x1b[0n"}
screen, done, held, typed = b"", 0, b"", False
end = time.time() + 60
while time.time() < end:
    if not select.select([fd], [], [], 0.1)[0]:
        continue
    try:
        data = os.read(fd, 65536)
    except OSError:
        data = b""
    if not data:
        break
    screen += data
    for found in re.finditer(b"|".join(map(re.escape, ASKED)), screen[done:]):
        held += ASKED[found.group()]
    # What may be the beginning of a question is looked at again.
    tail = re.search(rb"\x1b[^\x1b]*\Z", screen)
    done = tail.start() if tail and len(tail.group()) < 8 else len(screen)
    shown = b"undecided" in screen
    if held and (when == "prompt" or shown):
        os.write(fd, held)
        held = b""
    if shown and not typed:
        time.sleep(0.5)  # as a person: not within an answer
        os.write(fd, keys.encode())
        typed = True
else:
    sys.stderr.write("the review did not end\n")
    sys.stderr.write(repr(screen[-3000:]))
    os.kill(pid, 9)
    sys.exit(1)
sys.stdout.buffer.write(screen)
os.waitpid(pid, 0)
PY

asks="printf '\\033[?25\$p\\033[c\\033]10;?\\033\\\\\\033P+q79\\033\\\\'"
decision() { sl status --json | jq -r '.changes[0].decision'; }

for when in prompt late; do
  workspace "$T/w-$when"
  python3 "$T/answers.py" "$when" q \
    "$STOPLOG" run --review -- sh -c "echo new >added; $asks" >screen
  same none "$(decision)" "an answer ($when) decided"
  test ! -e added || fail "an answer ($when) committed"
  rm screen
done

# The person's keys: an unknown key's sequence is nothing, y approves, and the
# arrows, Escape and a search beyond ASCII do what they do.
workspace "$T/w-keys"
python3 "$T/answers.py" prompt $'\e[99;5y/ü\n\e[Byq' \
  "$STOPLOG" run --review -- sh -c "echo ü >added; $asks" >screen
same approved "$(decision)" "keys that were pressed"
