#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A daemon of another version: idle, it is sent away by whatever command comes;
# at work, it stays, every command says so, and `stop` ends it. A daemon that
# nobody needs ends by itself, and nobody misses it.
. "$(dirname "$0")/lib.sh" || exit 1
needs git jq python3
needs_fuse

# Puts the other version in the place of the draft's daemon.
other() { # idle|busy
  local id pid
  id=$(sl drafts --json | jq -r '.drafts[0].id')
  pid=$(sl drafts --json | jq '.drafts[0].daemon')
  [ "$pid" = null ] || kill -TERM "$pid"
  eventually sh -c '[ "$("$STOPLOG" drafts --json | jq ".drafts[0].daemon")" = null ]'
  DRAFT=$XDG_STATE_HOME/stoplog/drafts/$id
  : >"$T/other" # what the one before said
  python3 "$TOP/tests/tools/other_daemon.py" "$DRAFT" \
    "$XDG_RUNTIME_DIR/stoplog/$id" "$1" >"$T/other" &
  OTHER=$!
  eventually grep -q ready "$T/other"
}
sent_away() {
  wait "$OTHER"
  same left "$(tail -1 "$T/other")" "after $1"
}

replaced() {
  sl run --quiet -- sh -c 'echo 1 >one; echo 2 >two'
  local command
  for command in status 'diff --name-status' 'approve one' 'commit' 'log --json' \
    'snapshot' 'drafts' 'ps' 'run --quiet -- true' 'rollback' 'undo' 'mount'; do
    other idle
    # shellcheck disable=SC2086
    sl $command >"$T/said" 2>&1 || fail "$command: $(cat "$T/said")"
    case $command in log*) kill "$OTHER" && wait "$OTHER" || true ;; *) sent_away "$command" ;; esac
  done
  sl unmount
}

at_work() {
  sl run --quiet -- sh -c 'echo 1 >one'
  other busy
  local command
  for command in status diff 'approve one' 'commit -a -y' 'run -- true' mount unmount \
    'stop 1' 'discard -y' snapshot; do
    # shellcheck disable=SC2086
    exits 5 sl $command >"$T/said" 2>&1
    grep -q 'another version of stoplog' "$T/said" || fail "$command: $(cat "$T/said")"
    grep -q 'hint:.*stoplog stop' "$T/said" || fail "$command: $(cat "$T/said")"
  done
  [ ! -e one ] || fail 'something was written'
  kill -0 "$OTHER" || fail 'it was ended'
  sl stop
  sent_away stop
  same "$(printf 'A\tone')" "$(sl diff --name-status)"
  sl commit -a -y
  same 1 "$(cat one)"
  sl run --quiet -- true
  other busy
  sl rm -y "$(sl drafts --json | jq -r '.drafts[0].name')"
  sent_away rm
}

# 30 minutes, told as less: what the daemon does then is the same.
idle() {
  sl run --quiet -- sh -c 'echo 1 >one'
  local id
  id=$(sl drafts --json | jq -r '.drafts[0].id')
  kill -TERM "$(sl drafts --json | jq '.drafts[0].daemon')"
  eventually sh -c '[ "$("$STOPLOG" drafts --json | jq ".drafts[0].daemon")" = null ]'
  # In the foreground: it returns when it has ended by itself.
  sl daemon --serve "$id" --idle 100 >"$T/idle" 2>&1 || fail "$(cat "$T/idle")"
  [ ! -e "$XDG_RUNTIME_DIR/stoplog/$id/control" ] || fail 'a socket is left'
  same "$(printf 'A\tone')" "$(sl diff --name-status)"
  sl run --quiet -- sh -c 'cat one >two'
  same 1 "$(sl cat two)"
}

both_modes replaced
both_modes at_work
both_modes idle
