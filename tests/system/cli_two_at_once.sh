#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Two commands in one draft; readers, ps and stop meanwhile; a daemon that was
# killed is no obstacle.
. "$(dirname "$0")/lib.sh" || exit 1
needs jq
needs_fuse

together() {
  sl run --quiet -- sh -c 'echo 1 >first; sleep 30' &
  local running=$!
  eventually sh -c '[ "$("$STOPLOG" ps --json | jq ".commands | length")" = 1 ]'
  eventually sh -c '"$STOPLOG" diff --name-status | grep -q first'
  sl run --quiet -- sh -c 'cat first >second'
  same "$(printf 'A\tfirst\nA\tsecond')" "$(sl diff --name-status)"
  exits 4 sl rollback
  exits 4 sl discard -y
  sl approve first
  sl commit
  same 1 "$(cat first)"
  exits 2 sl stop 99
  sl stop
  local code=0
  wait "$running" || code=$?
  [ "$code" -ne 0 ] || fail 'a stopped command ended well'
  eventually sh -c '[ "$("$STOPLOG" ps --json | jq ".commands | length")" = 0 ]'
  same "$(printf 'A\tsecond')" "$(sl diff --name-status)"

  local daemon
  daemon=$(sl drafts --json | jq '.drafts[0].daemon')
  kill -KILL "$daemon"
  same "$(printf 'A\tsecond')" "$(sl diff --name-status)"
  sl run --quiet -- sh -c 'cat second >third'
  same 1 "$(sl cat third)"
}

both_modes together

# Whoever comes first makes the draft; the others find it.
first_ones() {
  local i clients=()
  for i in 1 2 3 4 5; do
    sl run --quiet -- sh -c "echo $i >$i" &
    clients+=($!)
  done
  for i in "${clients[@]}"; do wait "$i"; done
  same 1 "$(sl drafts --json | jq '.drafts | length')" 'drafts'
  same '1 2 3 4 5' "$(sl diff --name-status | cut -f2 | xargs)"
  for i in 1 2 3; do
    sl -d named run --quiet -- true &
    clients[i]=$!
  done
  for i in 1 2 3; do wait "${clients[i]}"; done
  same 2 "$(sl drafts --json | jq '.drafts | length')" 'drafts with the named one'
}

both_modes first_ones
