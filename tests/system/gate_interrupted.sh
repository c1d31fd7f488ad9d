#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A commit or an undo is killed half-way, and the next command is one that opens
# no draft: the tree is whole before that one shows it to anybody.
. "$(dirname "$0")/lib.sh" || exit 1
needs jq git strace
needs_fuse

# The sixth rename: the stage's own, and four of the files.
kill_halfway() {
  local got=0
  strace -f -o "$T/killed" -e trace=renameat2 \
    -e inject=renameat2:signal=KILL:when=6 "$STOPLOG" "$@" >"$T/out" 2>&1 || got=$?
  same 137 "$got" "the exit of $* when it was killed: $(cat "$T/out")"
  case "$(cat $FILES | xargs)" in "$OLD" | "$NEW") fail "$* did not die half-way" ;; esac
}
# What the killed one was to do is done, or is as before; nothing is left of it.
whole() {
  case "$(cat $FILES | xargs)" in
  "$OLD" | "$NEW") ;;
  *) fail "half-way after $*: $(cat $FILES | xargs)" ;;
  esac
  same '' "$(find "$XDG_STATE_HOME"/stoplog/commits/*/pending -mindepth 1)" "left after $*"
  grep -q 'a commit that was interrupted' "$T/out" || fail "$* does not say it: $(cat "$T/out")"
}
old_files() {
  FILES='f1 f2 f3 f4 f5 f6'
  OLD='old old old old old old'
  NEW='new new new new new new'
  for f in $FILES; do echo old >"$f"; done
}
# Of all drafts: a command may have started another one.
undo_entries() { cat "$XDG_STATE_HOME"/stoplog/drafts/*/ledger.jsonl | grep -c '"kind":"undo"' || true; }
hold_all() {
  sl run --quiet -- sh -c "for f in $FILES; do echo new >\$f; done"
}

# The draft was committed whole: it is nobody's current one.
undo_of_a_whole_draft() {
  old_files
  git add -A && git commit -qm more
  local command undos
  for command in status 'status --json' diff log 'run --quiet -- cat f1 f6' 'commit -a -y' 'approve --all'; do
    hold_all
    sl commit -a -y >/dev/null 2>&1
    undos=$(undo_entries)
    kill_halfway undo
    sl $command >"$T/out" 2>&1 || true
    whole $command
    same "$OLD" "$(cat $FILES | xargs)"
    same "$((undos + 1))" "$(undo_entries)" "undos on record after $command"
    case $command in
    run*) same 1 "$(grep -cx 'old\|new' < <(sort -u "$T/out"))" "what the command saw: $(cat "$T/out")" ;;
    esac
  done
  sl log --verify >/dev/null
}
both_modes undo_of_a_whole_draft

# The draft is open, and its view is not looked at before the command starts.
commit_before_a_run() {
  old_files
  git add -A && git commit -qm more
  local command
  for command in 'run --quiet -- cat f1 f6' '-d other run --quiet -- cat f1 f6' 'log' 'discard -y'; do
    hold_all
    sl approve --all >/dev/null 2>&1
    kill_halfway commit
    sl $command >"$T/out" 2>&1
    whole $command
    [ "$(cat f1)" = old ] || sl undo >/dev/null 2>&1
    same "$OLD" "$(cat $FILES | xargs)"
    sl -d other discard -y >/dev/null 2>&1 || true
    sl discard -y >/dev/null 2>&1 || true
  done
}
both_modes commit_before_a_run

# One that is at work is no interrupted one, and nobody waits for it.
beside_a_commit() {
  old_files
  hold_all
  sl commit -a -y >/dev/null 2>&1
  kill_halfway undo
  (
    flock 9
    same "$(sl run --quiet -- cat $FILES | xargs)" "$(cat $FILES | xargs)" 'a run beside a commit'
  ) 9<.
  sl status >"$T/out" 2>&1
  whole status
}
both_modes beside_a_commit
