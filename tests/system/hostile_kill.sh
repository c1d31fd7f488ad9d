#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The client, the daemon or the jail's first process is killed with -9 at many
# instants of a run: nothing inside lives on, the next command works, and
# nothing is left (lib.sh looks for processes, mounts and control groups).
# ctest: serial
# ctest: timeout 600
. "$(dirname "$0")/lib.sh" || exit 1
needs jq
needs_fuse

daemon() { sl drafts --json | jq '.drafts[0].daemon // empty'; }
gone() { ! pgrep -f '^sleep 47110' >/dev/null; }

# The victim's pid, as far as it lives already.
victim() {
  case $1 in
    client) echo "$2" ;;
    daemon) daemon ;;
    jail) pgrep -P "$(daemon || true)" -x stoplog-jail || true ;;
  esac
}

kill_at() {
  local who=$1 delay=$2 client pid
  # No function: its pid would be a shell's.
  "$STOPLOG" run --quiet -- sh -c 'setsid sleep 47110 & sleep 47110' </dev/null >"$T/out" 2>&1 &
  client=$!
  sleep "$delay"
  pid=$(victim "$who" "$client" 2>/dev/null || true)
  [ -z "$pid" ] || kill -9 "$pid" 2>/dev/null || true
  # Where there was nobody to kill yet, the client ends it as well.
  [ -n "$pid" ] || kill -9 "$client" 2>/dev/null || true
  wait "$client" 2>/dev/null || true
  eventually gone
  same "alive $who $delay" "$(sl run --quiet -- echo "alive $who $delay" 2>&1)"
}

kills() {
  local who delay
  for who in client daemon jail; do
    for delay in 0 0.01 0.03 0.06 0.1 0.3; do
      kill_at "$who" "$delay"
    done
    # With nothing to find: each starts its daemon anew.
    [ -z "$(daemon)" ] || kill -9 "$(daemon)"
  done
  # Clears up what the last one left.
  sl run --quiet -- true
}
both_modes kills
