#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A terminal inside works as outside, and is never the caller's own.
# ctest: serial
# ctest: timeout 600
. "$(dirname "$0")/lib.sh" || exit 1
. "$TOP/tests/system/jail/adapter.sh"
needs python3

attack() {
  case_ TT-01
  J '(exec 3<>/dev/tty) && echo TTY_OPEN; echo RAN'
  ran
  lacks TTY_OPEN

  case_ TT-04
  REPLACE=exec run_in_jail -- sh -c 'trap "echo INT" INT; echo UP; sleep 5; echo DONE' \
    </dev/null >"$OUT" 2>&1 &
  local client=$!
  eventually grep -q UP "$OUT"
  kill -INT "$client"
  wait "$client" || true
  has '^INT$'
  J 'echo ALIVE'
  has ALIVE

  case_ TT-person
  if [ "$ADAPTER" = plain ]; then
    TIME_LIMIT='-l time=2s' \
      python3 "$TOP/tests/system/jail/terminal.py" "$BUILD/tests/jailrun" -w "$P"
  else
    TIME_LIMIT='--time 2s' \
      python3 "$TOP/tests/system/jail/terminal.py" "$STOPLOG" --workspace "$P" run --quiet
  fi
}
everywhere attack
