#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Each wall stops what it is there to stop: the same attack is made with the
# wall (and must fail) and without it (and must succeed). Where a second wall
# stands behind the first, either alone stops it.
# ctest: serial
# ctest: timeout 600
. "$(dirname "$0")/lib.sh" || exit 1
. "$TOP/tests/system/jail/adapter.sh"
needs gcc python3 ipcmk

# try WALLS COMMAND: does the attack print SUCCESS with these walls left out?
try() {
  local wall options=()
  for wall in $1; do options+=(-x "$wall"); done
  : >"$OUT"
  run_in_jail "${options[@]}" ${MORE:-} -- sh -c "$2" </dev/null >"$OUT" 2>&1 || true
  grep -q SUCCESS "$OUT"
}
# wall NAME LEFT_OUT COMMAND [STILL]: with all walls, and with each of STILL
# left out alone, it fails; without LEFT_OUT it succeeds.
wall() {
  CASE=$1
  local alone
  echo "  $CASE"
  ! try '' "$3" || {
    show 'it got through'
    fail "$CASE"
  }
  for alone in ${4:-}; do
    ! try "$alone" "$3" || {
      show "it got through without $alone, though another wall stands"
      fail "$CASE"
    }
  done
  try "$2" "$3" || {
    show "the attack fails even without $2: it proves nothing"
    fail "$CASE"
  }
}

# stands NAME LEFT_OUT COMMAND: NAME stops it even without the others.
stands() {
  CASE=$1
  echo "  $CASE alone"
  ! try "$2" "$3" || {
    show "it got through without $2"
    fail "$CASE"
  }
}

attack() {
  helpers
  cp "$TOP"/tests/system/jail/*.py "$P/"
  chmod 755 "$C"
  wall 'own root' 'root landlock' "cat $C/canary && echo SUCCESS"

  mkdir -p "$C/shown"
  echo CANARY >"$C/shown/canary"
  [ "$MODE" = user ] || chown -R "$JAIL_ID" "$C/shown"
  # Not beneath /tmp, where Landlock lets one write.
  MORE="-b $C/shown:/opt/shown" wall 'read-only binds' 'ro landlock' \
    "echo pwn > /opt/shown/canary && echo SUCCESS" 'ro landlock'
  same pwn "$(cat "$C/shown/canary")"

  wall 'masks of /proc' proc '[ -n "$(cat /proc/cmdline)" ] && echo SUCCESS'
  if [ "$MODE" = root ]; then
    # Host root without any capability may still write these. Only opened.
    wall 'read-only /proc/sys' 'proc identity landlock' 'python3 -c "
import os
os.open(\"/proc/sys/kernel/core_pattern\", os.O_WRONLY)
print(\"SUCCESS\")"' 'proc identity landlock'
  else
    # Nothing there is an ordinary user's to write: the mount's flag alone.
    wall 'read-only /proc/sys' proc \
      'awk "\$2 == \"/proc/sys\"" /proc/mounts | grep -q " ro," || echo SUCCESS'
  fi

  sleep 4242 &
  local sleeper=$!
  wall 'pid namespace' pidns \
    'for p in /proc/[0-9]*/cmdline; do tr "\0" " " <$p; done | grep -q "sleep 424[2]" && echo SUCCESS'
  kill "$sleeper"

  python3 -c 'import socket
s=socket.socket();s.setsockopt(socket.SOL_SOCKET,socket.SO_REUSEADDR,1)
s.bind(("127.0.0.1",18779));s.listen();print("up",flush=True)
while True: s.accept()[0].send(b"SUCCESS\n")' >"$T/up" &
  local server=$!
  eventually test -s "$T/up"
  wall 'network namespace' netns \
    'python3 -c "import socket;print(socket.create_connection((\"127.0.0.1\",18779)).recv(8))"'
  kill "$server"
  rm -f "$T/up"

  local id
  id=$(ipcmk -M 4096 -p 0666 | tr -dc 0-9)
  wall 'ipc namespace' ipcns "ipcs -m | grep -q ' $id ' && echo SUCCESS"
  ipcrm -m "$id"

  wall 'no nested user namespaces' 'usernslimit seccomp' \
    'unshare -U true && echo SUCCESS' 'usernslimit seccomp'
  # exec alone drops what a user has; a program with file capabilities would
  # bring them back. Without no_new_privs a filter needs a capability to install,
  # so those two walls go together.
  if [ -n "${RAW:-}" ]; then
    MORE="-b $RAW:/opt/raw" wall 'capabilities of files' \
      'nosuid nnp caps seccomp landlock' '/opt/raw/rawsock' \
      'nosuid nnp caps seccomp landlock'
    # Each of the three alone stops it.
    MORE="-b $RAW:/opt/raw" stands 'nosuid' 'nnp caps seccomp landlock' /opt/raw/rawsock
    MORE="-b $RAW:/opt/raw" stands 'no new privileges' 'nosuid caps' /opt/raw/rawsock
    MORE="-b $RAW:/opt/raw" stands 'bounding set' 'nosuid nnp seccomp landlock' /opt/raw/rawsock
  fi
  wall 'seccomp' seccomp 'helpers/nsflags | grep -q "clone3 OPEN" && echo SUCCESS'
  wall 'terminal injection' seccomp \
    'python3 calls.py terminal | grep -q OPEN && echo SUCCESS'

  exec 7<"$C/canary"
  wall 'descriptors' fds '(cat <&7) | grep -q CANARY && echo SUCCESS'
  exec 7<&-

  SECRET_TOKEN=DECOYSECRET wall 'environment' env \
    'env | grep -q DECOYSECRET && echo SUCCESS'
  # Written to the caller's terminal, though no stream of it is one.
  LAUNCH="python3 $TOP/tests/system/jail/host_tty.py" wall 'own session' session \
    'echo SUC""CESS >/dev/tty'
  wall 'init cannot be looked into' 'dumpable landlock' \
    'cat /proc/1/maps | grep -q . && echo SUCCESS' 'dumpable landlock'
  MORE='-l files=50' wall 'resource limits' rlimits \
    'python3 -c "
import os
for i in range(60): os.open(\"/dev/null\", 0)
print(\"SUCCESS\")"'

  if [ "$MODE" = root ]; then
    echo SUCCESS >"$P/of-root"
    chown 0:0 "$P/of-root"
    chmod 600 "$P/of-root"
    wall 'identity' identity 'cat of-root'
  fi
  keyring
  death
}

keyring() {
  local launch="python3 $TOP/tests/system/jail/keyring.py run"
  $launch true || {
    echo '  no keyring to try'
    return 0
  }
  LAUNCH=$launch wall 'session keyring' 'keyring seccomp' \
    'python3 keyring.py find' 'keyring seccomp'
}

# Killed with -9 outside, nothing inside lives on; without the wall it does.
death() {
  CASE='death of the outside'
  echo "  $CASE"
  local option client
  for option in '' '-x death'; do
    : >"$OUT"
    REPLACE=exec run_in_jail $option -- sh -c 'echo UP; sleep 6161' \
      </dev/null >"$OUT" 2>&1 &
    client=$!
    eventually grep -q UP "$OUT"
    eventually pgrep -f '^sleep 6161' >/dev/null
    kill -9 "$client"
    wait "$client" 2>/dev/null || true
    if [ -z "$option" ]; then
      PATIENCE=30 eventually dead
    else
      sleep 1
      not dead
      kill -9 $(pgrep -f '^sleep 6161') $(pgrep -x stoplog-jail) || true
      eventually dead
    fi
  done
  # Clears up what the kills left.
  J 'echo ALIVE'
  has ALIVE
}
dead() { ! pgrep -f '^sleep 6161' >/dev/null; }

# A program with a file capability, which only root can make.
if [ "$(id -u)" -eq 0 ] && command -v setcap >/dev/null; then
  mkdir "$T/raw"
  gcc -O1 -o "$T/raw/rawsock" "$TOP/tests/system/jail/rawsock.c"
  # On a file system that is mounted nosuid it would prove nothing.
  if setcap cap_net_raw+ep "$T/raw/rawsock" 2>/dev/null &&
    [[ $(findmnt -no OPTIONS -T "$T") != *nosuid* ]]; then
    export RAW=$T/raw
  fi
fi

ADAPTER=plain
export ATTACK=attack
ATTACK_plain
