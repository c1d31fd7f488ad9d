#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What commands share with each other and with the user's own programs: IPC ends
# with its command, and what the kernel counts for a user cannot be used up.
# ctest: serial
# ctest: timeout 600
. "$(dirname "$0")/lib.sh" || exit 1
. "$TOP/tests/system/jail/adapter.sh"
needs python3

# again COMMAND: twice, one after the other, in one jail.
again() {
  if [ "$ADAPTER" = plain ]; then
    JAILRUN_OPTIONS='-r 2' J "$1"
  else
    J "$1"
    J "$1"
  fi
}

ipc() {
  case_ 'IPC that outlives its command'
  again 'python3 shared.py find; python3 shared.py leave; echo RAN'
  ran
  same 2 "$(grep -c '^LEFT 3$' "$OUT")" "$CASE: it proves nothing"
  same 6 "$(grep -c '^NONE ' "$OUT")" "$CASE"
  lacks FOUND

  [ "$ADAPTER" = draft ] || return 0
  case_ 'IPC of another command that runs'
  rm -f "$P/go"
  J 'python3 shared.py leave; while [ ! -e go ]; do sleep 0.05; done; python3 shared.py find' &
  local first=$!
  eventually grep -q LEFT "$OUT"
  run_in_jail -- python3 shared.py find </dev/null >"$T/other" 2>&1
  touch "$P/go"
  wait "$first"
  same 3 "$(grep -c '^FOUND ' "$OUT")" "$CASE: it lost its own"
  same 3 "$(grep -c '^NONE ' "$T/other")" "$CASE: $(cat "$T/other")"
  rm -f "$P/go"
}

# count KIND MOST: a jail takes at most MOST, while the user's own programs
# still get one.
count() {
  case_ "$1 are not used up"
  rm -f "$P/go"
  J "python3 shared.py take $1 go; echo RAN" &
  local taker=$! took
  eventually grep -qE "^TOOK $1 [0-9]+$" "$OUT"
  took=$(sed -n "s/^TOOK $1 //p" "$OUT")
  local left=0
  python3 "$P/shared.py" one "$1" || left=1
  touch "$P/go"
  wait "$taker"
  ran
  same 0 "$left" "$CASE: none is left for the user (the jail has $took)"
  [ "$took" -gt 0 ] || fail "$CASE: it took none, which proves nothing"
  [ "$took" -le "$2" ] || fail "$CASE: it took $took of at most $2"
  rm -f "$P/go"
}

counts() {
  count inotify $(($(cat /proc/sys/fs/inotify/max_user_instances) / 4))
  count signals $(($(ulimit -i) / 4))
  [ "$(ulimit -l)" = unlimited ] || count locked $(($(ulimit -l) / 64 / 4))

  case_ 'inotify watches'
  J 'cat /proc/sys/user/max_inotify_watches; echo RAN'
  ran
  [ "$(head -n 1 "$OUT")" -le $(($(cat /proc/sys/fs/inotify/max_user_watches) / 4)) ] ||
    fail "$CASE: $(head -n 1 "$OUT")"

  case_ 'priority over all others'
  # Whom pam_limits lets have it: members of audio, realtime, games...
  (
    ulimit -r 50 2>/dev/null || true
    ulimit -e 30 2>/dev/null || true
    J 'chrt -f 10 true && echo REALTIME; nice -n -5 nice 2>/dev/null | grep -q "^-" && echo BEFORE
       echo RAN'
  )
  ran
  lacks 'REALTIME|BEFORE'

  case_ 'processes of a user who may have few'
  # Half of what the user may have, though `pids` says more.
  (
    ulimit -u 60
    J 'python3 -c "
import os,time
n=0
try:
  while n<100:
    if os.fork()==0: time.sleep(20); os._exit(0)
    n+=1
except OSError: pass
print(\"FORKED\",n)"; echo RAN'
  )
  if [ "$ADAPTER" = plain ]; then
    has '^FORKED [12][0-9]$'
  fi
}

# Nothing divides these, and the whole machine has one store of each.
machine() {
  case_ 'asynchronous I/O contexts'
  J 'python3 shared.py take aio; echo RAN'
  ran
  has '^TOOK aio 0$'

  case_ 'filters on sockets'
  J 'python3 -c "
import ctypes,socket,struct
code=ctypes.create_string_buffer(struct.pack(\"HBBI\",6,0,0,0xffff))
program=struct.pack(\"HL\",1,ctypes.addressof(code))
for option in (26,51):
  s=socket.socket(socket.AF_INET,socket.SOCK_DGRAM)
  s.setsockopt(1,15,1)
  try: s.setsockopt(1,option,program); print(\"OPEN\",option)
  except PermissionError: print(\"CLOSED\",option)"; echo RAN'
  ran
  lacks OPEN
  same 2 "$(grep -c CLOSED "$OUT")" "$CASE"

  case_ 'leases on files'
  J 'python3 -c "
import fcntl,os
open(\"/tmp/own\",\"w\").close()
f=os.open(\"/tmp/own\",os.O_RDONLY)
try: fcntl.fcntl(f,fcntl.F_SETLEASE,fcntl.F_RDLCK); print(\"OPEN\")
except PermissionError: print(\"CLOSED\")"; echo RAN'
  ran
  lacks OPEN
  has CLOSED
}

attack() {
  cp "$TOP/tests/system/jail/shared.py" "$P/"
  ipc
  counts
  machine
}
everywhere attack
