#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Who waits for whom in one draft: a person who is asked keeps nobody waiting,
# with a daemon or without; who waited goes on only with what is still there.
. "$(dirname "$0")/lib.sh" || exit 1
needs jq git script strace pgrep
needs_fuse

draft_file() { echo "$XDG_STATE_HOME/stoplog/drafts/$(sl drafts --json | jq -r '.drafts[-1].id')/$1"; }
no_daemon() {
  local pid
  pid=$(sl drafts --json | jq '.drafts[-1].daemon // empty')
  [ -z "$pid" ] || kill "$pid"
  eventually sh -c '"$STOPLOG" drafts --json | jq -e ".drafts[-1].daemon == null" >/dev/null'
}
held() { for held in "$@"; do sl cat "$held"; done | xargs; }
# Asks on a terminal of its own, until `answer`; its output is in $T/tty.
ask() {
  rm -f "$T/answers"
  mkfifo "$T/answers"
  script -qec "'$STOPLOG' $1" /dev/null <"$T/answers" >"$T/tty" 2>&1 &
  ASKED=$!
  exec 8>"$T/answers"
  eventually grep -q "$2" "$T/tty"
}
answer() {
  local got=0
  echo y >&8
  exec 8>&-
  wait "$ASKED" || got=$?
  same "$1" "$got" "$(cat "$T/tty")"
}

asked_without_a_daemon() {
  echo v0 >p && git add -A && git commit -qm more
  sl run --quiet -- sh -c 'echo v1 >p; echo n >n; echo d >d'
  no_daemon
  ask 'commit -a' 'approve and commit'
  sl run --quiet -- sh -c 'echo late >late; echo v2 >p' 8>&-
  no_daemon
  sl snapshot -m meanwhile 8>&- >/dev/null
  # What was shown is committed, what came later is held.
  answer 0
  same 'v1 n d' "$(cat p n d | xargs)"
  test ! -e late || fail 'what came after the question was committed'
  same 'v2 late' "$(held p late)"

  sl run --quiet -- sh -c 'echo e >e; mkdir m; mv p m/p; echo x >p'
  no_daemon
  ask 'discard p' 'discard 1 held change'
  sl run --quiet -- sh -c 'echo f >f' 8>&-
  no_daemon
  answer 0
  same 'v1 v2 e f late' "$(held p m/p e f late)"
  sl log --verify >/dev/null
}
both_modes asked_without_a_daemon

# A command that began while the question stood is not pulled from under.
discard_that_a_command_overtook() {
  sl run --quiet -- sh -c 'echo n >n'
  no_daemon
  ask discard "with all that it holds"
  sl run --quiet -- sh -c 'echo m >m; until [ -e stop ]; do sleep 0.05; done' 8>&- &
  local running=$!
  eventually sh -c '[ "$("$STOPLOG" ps --json | jq ".commands | length")" = 1 ]'
  answer 4
  same 1 "$(sl ps --json | jq '.commands | length')" 'the command was ended'
  sl stop >/dev/null 2>&1
  wait "$running" || true
  same n "$(held n)"
}
both_modes discard_that_a_command_overtook

# $1 waits for the turn of a draft that is discarded meanwhile.
waits_for_a_discarded_draft() {
  local json
  sl run --quiet -- sh -c 'echo n >n'
  sl run --quiet -- sh -c 'echo m >n'
  sl approve --all >/dev/null
  json=$(draft_file draft.json)
  exec 7>"$(draft_file turn.lock)"
  flock 7
  "$STOPLOG" "$@" >"$T/out" 2>&1 7>&- &
  local waiter=$! got=0
  eventually sh -c "readlink /proc/$waiter/fd/* | grep -q turn.lock"
  jq '.state = "discarded"' "$json" >"$T/json" && cat "$T/json" >"$json"
  exec 7>&-
  wait "$waiter" || got=$?
  same 3 "$got" "$* went through: $(cat "$T/out")"
  grep -q 'was discarded meanwhile' "$T/out" || fail "$(cat "$T/out")"
  test ! -e n || fail 'a discarded draft was committed'
}
behind_a_discard() {
  waits_for_a_discarded_draft commit
  waits_for_a_discarded_draft rollback @2
  waits_for_a_discarded_draft discard -y n
}
both_modes behind_a_discard

# The decisions cannot be written after a commit: that is said, and nobody waits
# for a lock that the commit itself has.
decisions_cannot_be_written() {
  [ "$MODE" = user ] || return 0
  sl run --quiet -- sh -c 'echo n >n; echo m >m'
  sl approve n >/dev/null
  no_daemon
  local dir
  dir=$(dirname "$(draft_file draft.json)")
  touch "$dir/turn.lock"
  chmod 500 "$dir"
  sl commit >"$T/out" 2>&1 || fail "$(cat "$T/out")"
  chmod 700 "$dir"
  same n "$(cat n)"
  grep -q 'the commit is done, but cannot write the decisions' "$T/out" || fail "$(cat "$T/out")"
  ! grep -q 'cannot open the draft' "$T/out" || fail "it waited for itself: $(cat "$T/out")"
  prints '^A  m ' sl status
  same m "$(held m)"
}
both_modes decisions_cannot_be_written

# A rollback that the daemon finishes after who asked for it, and its turn, are
# gone, falls between what a discard looked at and what it says to the draft.
discard_that_a_rollback_overtook() {
  local lock client tracer got=0
  sl run --quiet -- sh -c 'echo one >held'
  sl run --quiet -- sh -c 'echo two >held'
  lock=$(draft_file turn.lock)
  # It stops where it reads the policy, the draft being read by then.
  strace -f -o /dev/null -e trace=openat -P "$XDG_CONFIG_HOME/stoplog/config.toml" \
    -e inject=openat:signal=STOP:when=1 "$STOPLOG" discard -y held >"$T/out" 2>&1 &
  tracer=$!
  eventually sh -c "ps -o stat= --ppid $tracer | grep -qi '^t'"
  client=$(pgrep -P "$tracer")
  mv "$lock" "$lock.kept"
  sl rollback @2 >/dev/null 2>&1
  mv "$lock.kept" "$lock"
  kill -CONT "$client"
  wait "$tracer" || got=$?
  same 3 "$got" "$(cat "$T/out")"
  grep -q 'nothing was discarded' "$T/out" || fail "$(cat "$T/out")"
  same one "$(held held)"
  same 0 "$(sl log --json | jq '[.entries[] | select(.kind == "discard")] | length')"
  sl discard -y held >/dev/null
  same '' "$(sl diff --name-status)"
}
both_modes discard_that_a_rollback_overtook
