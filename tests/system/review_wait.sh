#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A review of so much that it takes a while to look at: the list is there before
# contents were read, can be read and left, and what is open can be decided;
# dangers that lie in contents arrive by themselves, and commit is closed until
# they are seen.
. "$(dirname "$0")/lib.sh" || exit 1
. "$TOP/tests/tools/tty.sh"
needs git python3 strace jq
needs_fuse
PATIENCE_MS=10

workspace
sl run --quiet -- sh -c 'for i in $(seq 100 499); do echo "line of $i" >name$i; done
  echo ghp_a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8 >name300'
same danger "$(sl status --json | jq -r '.changes[] | select(.path == "name300").risks[0].level')"
# Each read delayed, so that it takes a while on any machine.
slowly="strace -f -o /dev/null -e trace=pread64 -e inject=pread64:delay_exit=$((PATIENCE_MS * 1000)) $STOPLOG"

# The list is there while most was not looked at, what is opened is shown, and
# leaving waits for nothing.
tty_start 80 24 "$slowly review; echo exit \$?"
tty_matches 'looking at [0-9]* of 400 changes'
tty_sees 'A name100'
tty_send q
tty_sees 'exit 0'
tty_start 80 24 "$slowly review; echo exit \$?"
tty_matches 'looking at [0-9]* of 400 changes'
tty_send C-c
tty_sees 'exit 130'

# What is open is decided meanwhile, and commit waits for all; the danger that
# lies in a content comes on top, and what was being read stays.
tty_start 80 24 "$slowly review; echo exit \$?"
tty_sees '+line of 100'
tty_send c
tty_matches 'not before every change was looked at: [0-9]* of 400 so far'
tty_send y
tty_sees '+line of 101'
tty_matches '✓ *A name100'
tty_send ]
tty_sees '+line of 102'
PATIENCE=180 tty_sees '399 of 400 undecided, 1 danger not seen'
tty_sees 'every change was looked at: 1 danger; ! goes there'
tty_sees '▸   A name102'
tty_sees '+line of 102'
tty_send y
tty_sees '398 of 400 undecided'
tty_send c
tty_sees 'commit is closed: danger not seen: name300'
tty_send '!'
tty_sees 'DANGER secret'
tty_send c
tty_sees 'commit 2 files, hold back 398? y/n'
tty_send y
PATIENCE=180 tty_sees 'committed 2 changes'
tty_sees 'exit 0'
same 'line of 100' "$(cat name100)" 'what was approved before all was looked at'
same 'line of 102' "$(cat name102)" 'what was approved'
test ! -e name101 || fail 'what nobody approved was committed'

# Who leaves with something decided leaves the screen at once; it is kept when
# all was looked at. Ctrl-C leaves without.
tty_start 80 24 "$slowly review; echo exit \$?"
tty_sees '+line of 101'
tty_send x 'not yet' Enter
tty_sees '+line of 103'
tty_send q
tty_sees 'keeping what was decided on 1 file'
tty_lacks '+line of 103'
PATIENCE=180 tty_sees 'exit 0'
same rejected "$(sl status --json | jq -r '.changes[] | select(.path == "name101").decision')"
same 'not yet' "$(sl log --json | jq -r '.entries[-1].reason')" 'the reason in the log'
tty_start 80 24 "$slowly review; echo exit \$?"
tty_sees '+line of'
tty_send ] ] y q
tty_sees 'keeping what was decided on 1 file'
tty_send C-c
tty_sees 'exit 130'
same 0 "$(sl status --json | jq '[.changes[] | select(.decision == "approved")] | length')"

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
