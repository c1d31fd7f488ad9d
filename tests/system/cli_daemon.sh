#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Other users are refused at a daemon's socket; a discard of many paths leaves
# nothing; `run --review` ends on the screen, of an ordinary user too.
# ctest: timeout 300
. "$(dirname "$0")/lib.sh" || exit 1
. "$TOP/tests/tools/tty.sh"
needs git jq python3
needs_fuse

export PATIENCE=60
discarded() {
  sl run --quiet -- sh -c 'mkdir -p new/deep; i=0
    while [ $i -lt 700 ]; do echo $i >new/f$i; echo $i >new/deep/g$i; i=$((i + 1)); done
    echo kept >kept'
  sl discard -y new >"$T/said"
  same 'discarded 1400 held changes' "$(cat "$T/said")"
  same kept "$(sl diff --name-status | cut -f2)"
  same "$(printf 'README.md\nkept\nsrc')" "$(sl run --quiet -- ls)" 'what is left'
}

reviewed_at_once() {
  TTY=0
  tty_start 90 24 "cd $PWD; $STOPLOG run --review -- sh -c 'echo new >added'; echo exit \$?"
  tty_sees 'added'
  tty_sees 'undecided'
  tty_send y
  tty_sees 'approved'
  tty_send q
  tty_sees 'exit 0'
  tty_end
  same approved "$(sl status --json | jq -r '.changes[0].decision')"
  # The command's exit code is that of `run`, review or not.
  tty_start 90 24 "cd $PWD; $STOPLOG run --review -- sh -c 'echo 2 >second; exit 7'; echo exit \$?"
  tty_sees 'second'
  tty_send q
  tty_sees 'exit 7'
  tty_end
}

# A session has a runtime directory, a cron job or `su` in the same hour none:
# both find the daemon.
elsewhere() {
  sl run --quiet -- sh -c 'echo x >a'
  local daemon other
  daemon=$(sl drafts --json | jq '.drafts[0].daemon')
  mkdir -m 700 "$T/other-run-$MODE"
  for other in '' "$T/other-run-$MODE"; do
    export XDG_RUNTIME_DIR=$other
    same "$daemon" "$(sl drafts --json | jq '.drafts[0].daemon')" "«$other»"
    same a "$(sl status --json | jq -r '.changes[].path')"
    sl run --quiet -- sh -c 'echo y >>a'
    same "$daemon" "$(sl drafts --json | jq '.drafts[0].daemon')" "«$other»"
  done
  # One that is gone there is none; the next is found from where the first was.
  kill -KILL "$daemon"
  sl run --quiet -- sh -c 'echo z >>a'
  daemon=$(sl drafts --json | jq '.drafts[0].daemon')
  export XDG_RUNTIME_DIR=$T/run
  same "$daemon" "$(sl drafts --json | jq '.drafts[0].daemon')"
  sl commit -a -y >/dev/null 2>&1
  same 'x y y z' "$(xargs <a)"
  sl run --quiet -- sh -c 'echo b >b'
  sl rm -y "$(sl drafts --json | jq -r '.drafts[] | select(.current).name')"
}

both_modes discarded
both_modes reviewed_at_once
both_modes elsewhere

# Another user at the socket of root's daemon: not a word.
if [ "$(id -u)" -eq 0 ]; then
  workspace "$T/w-refused"
  sl run --quiet -- true
  prepare_user
  socket=$(find "$XDG_RUNTIME_DIR" "$XDG_STATE_HOME" -name control -type s | head -1)
  [ -n "$socket" ] || fail 'no socket'
  at=$socket
  chmod 666 "$socket"
  while [ "$at" != "$T" ]; do
    at=$(dirname "$at")
    chmod o+x "$at"
  done
  hello='
import os, socket, sys
os.setgroups([])
os.setgid(int(sys.argv[2]))
os.setuid(int(sys.argv[2]))
s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
s.connect(sys.argv[1])
try:
    s.send(b"SLOG\1\0\1\0\1\0\0\0\t\0\0\0\0\5\0\0\x000.1.0")
    print(len(s.recv(4096)))
except OSError:
    print(0)'
  same 0 "$(python3 -c "$hello" "$socket" "$TEST_UID")" 'what another user got'
  [ "$(python3 -c "$hello" "$socket" 0)" -gt 0 ] || fail 'not even its own user'
  sl run --quiet -- true
fi
