#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Hostile and odd input to a run itself: arguments, directories, streams,
# signals that are ignored. Each has a defined result.
# ctest: serial
# ctest: timeout 300
. "$(dirname "$0")/lib.sh" || exit 1
. "$TOP/tests/system/jail/adapter.sh"
needs python3

status() {
  RC=0
  "$@" >>"$OUT" 2>&1 || RC=$?
}

attack() {
  PROGRAM=("$STOPLOG" --workspace "$P" run --quiet)
  [ "$ADAPTER" = draft ] || PROGRAM=("$BUILD/tests/jailrun" -w "$P")
  case_ 'not found'
  status run_in_jail -- no-such-command </dev/null
  same 127 "$RC" "$CASE"
  status run_in_jail -- /no/such/command </dev/null
  same 127 "$RC" "$CASE"
  status run_in_jail -- '' </dev/null
  same 127 "$RC" "$CASE"

  case_ 'not executable'
  echo text >"$P/plain-file"
  status run_in_jail -- ./plain-file </dev/null
  same 126 "$RC" "$CASE"
  status run_in_jail -- ./src </dev/null
  same 126 "$RC" "$CASE"

  case_ 'exit codes and signals'
  status run_in_jail -- sh -c 'exit 42' </dev/null
  same 42 "$RC" "$CASE"
  status run_in_jail -- sh -c 'kill -SEGV $$' </dev/null
  same 139 "$RC" "$CASE"

  case_ 'arguments of any bytes'
  status run_in_jail -- python3 -c 'import os,sys;print(os.fsencode(sys.argv[1]).hex(),len(sys.argv))' \
    $'\xff\x01\n\'"\\ $(id)' '' </dev/null
  has '^ff010a27225c2024286964290* 3$|^ff010a27225c20242869642 3$|^ff010a27225c202428696429 3$'

  case_ 'enormous arguments'
  status python3 -c 'import os,sys
a=sys.argv[1:]+["--","sh","-c","echo $# ${#1}","x"]+["y"*100000]*10
os.execv(a[0],a)' "${PROGRAM[@]}" </dev/null
  has '^10 100000$'
  # More than a command may have: said, and nothing run.
  status python3 -c 'import os,sys
os.execv(sys.argv[1],sys.argv[1:]+["--","echo"]+["y"*100000]*15+["z"*131000])' \
    "${PROGRAM[@]}" </dev/null
  [ "$RC" = 0 ] || [ "$RC" = 126 ] || fail "$CASE: exit $RC"

  case_ 'an enormous environment'
  status python3 -c 'import os,sys
e=dict(os.environ,**{"LC_X%d"%i:"v"*50000 for i in range(20)},**{"BIG%d"%i:"v"*50000 for i in range(10)})
os.execve(sys.argv[1],sys.argv[1:]+["--","sh","-c","echo BIG=${#BIG1}; echo WELL"],e)' \
    "${PROGRAM[@]}" </dev/null
  same 0 "$RC" "$CASE"
  has '^WELL$'
  has '^BIG=0$'

  case_ 'a directory that is gone'
  if [ "$ADAPTER" = draft ]; then
    mkdir "$P/going"
    RC=0
    (cd "$P/going" && rmdir "$P/going" && exec "$STOPLOG" run --quiet -- echo STARTED) \
      </dev/null >"$OUT" 2>&1 || RC=$?
    [ "$RC" != 0 ] || fail "$CASE: it ran"
    lacks STARTED
    has '^stoplog: cannot '
  fi
  if [ "$ADAPTER" = plain ]; then
    status run_in_jail -c "$P/no-such-dir" -- true </dev/null
    same 125 "$RC" "$CASE"
    has 'no-such-dir'
  fi

  case_ 'closed streams'
  status run_in_jail -- sh -c 'cat; echo END' <&-
  has '^END$'
  RC=0
  run_in_jail -- sh -c 'echo lost; exit 3' </dev/null >&- || RC=$?
  same 3 "$RC" "$CASE"
  RC=0
  run_in_jail -- sh -c 'echo lost >&2; exit 4' </dev/null 2>&- || RC=$?
  same 4 "$RC" "$CASE"

  case_ 'a reader that goes away'
  { run_in_jail -- yes </dev/null || RC=$?; } | head -n 1 >"$OUT"
  has '^y$'

  case_ 'input byte for byte'
  head -c 3000000 /dev/urandom >"$T/random"
  run_in_jail -- cat <"$T/random" | cmp - "$T/random"
  run_in_jail -- sh -c 'cat >&2' <"$T/random" 2>&1 >/dev/null | cmp - "$T/random"

  case_ 'input that is not read is given back'
  printf '1\n2\n3\n' >"$T/lines"
  while read -r line; do
    echo "line $line" >>"$OUT"
    run_in_jail -- true
  done <"$T/lines"
  same 'line 1 line 2 line 3' "$(tr '\n' ' ' <"$OUT" | sed 's/ $//')" "$CASE"

  case_ 'input is not rewound by a command that fills its own pipe'
  {
    read -r line
    run_in_jail -- sh -c 'cat >/dev/null; head -c 6 /dev/zero >/proc/self/fd/0
                          echo RAN'
    cat
  } <"$T/lines" >"$OUT" 2>/dev/null
  ran
  lacks '^1$' # what was read before the command came

  case_ 'SIGCHLD ignored'
  status env --ignore-signal=SIGCHLD "${PROGRAM[@]}" -- sh -c 'true & wait; echo WELL; exit 9' </dev/null
  same 9 "$RC" "$CASE"
  has WELL

  case_ 'a signal reaches the command'
  REPLACE=exec run_in_jail -- sh -c 'trap "echo GOT; exit 7" TERM; echo UP; while :; do sleep 0.1; done' \
    </dev/null >"$OUT" 2>&1 &
  local client=$!
  eventually grep -q UP "$OUT"
  kill -TERM "$client"
  RC=0
  wait "$client" || RC=$?
  same 7 "$RC" "$CASE"
  has GOT

  case_ 'a full disk'
  if [ -c /dev/full ]; then
    RC=0
    run_in_jail -- sh -c 'echo x; exit 5' </dev/null >/dev/full || RC=$?
    same 5 "$RC" "$CASE"
  fi
  if [ "$ADAPTER" = draft ] && [ "$MODE" = root ]; then full_state; fi
}

# No room for the draft itself: said, nothing run; and no harm once there is.
full_state() {
  case_ 'a full disk beneath the state'
  mkdir "$T/small"
  mount -t tmpfs -o size=1M small "$T/small"
  head -c 2M /dev/zero >"$T/small/fill" 2>/dev/null || true
  RC=0
  XDG_STATE_HOME=$T/small/state "$STOPLOG" run --quiet -- echo STARTED \
    </dev/null >"$OUT" 2>&1 || RC=$?
  same 125 "$RC" "$CASE"
  lacks STARTED
  has 'No space left on device'
  rm "$T/small/fill"
  XDG_STATE_HOME=$T/small/state "$STOPLOG" run --quiet -- echo STARTED \
    </dev/null >"$OUT" 2>&1
  has STARTED
}
everywhere attack
