#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A commit is killed after the real tree has it, and before the draft or its
# record are known to: the next command tells them, each once.
. "$(dirname "$0")/lib.sh" || exit 1
needs jq git strace
needs_fuse

# Two directories change places; a file leaves one of them and stays held.
swap() {
  mkdir a b
  echo one >a/f1
  echo two >b/f2
  git add -A && git commit -qm more
  sl run --quiet -- sh -c 'mv a tmp; mv b a; mv tmp b'
  sl approve --all --danger >/dev/null 2>&1
}
# Kills a commit at the call that gives a file the name $1: strace counts the
# calls of each kind. The last one that was made is that one, and it died of it.
kill_at() {
  local call got=0
  call=$(grep -m 1 "\"$1\"" "$T/renames") || fail "no rename to $1: $(cat "$T/renames")"
  call=${call%%(*}
  strace -o "$T/killed" -e trace="$call" -e inject="$call":signal=KILL:when="$(
    grep "^$call(" "$T/renames" | grep -n -m 1 "\"$1\"" | cut -d: -f1
  )" "$STOPLOG" commit >"$T/out" 2>&1 || got=$?
  same 137 "$got" "the exit of a commit that was killed: $(cat "$T/out" "$T/killed")"
  same '+++ killed by SIGKILL +++' "$(tail -n 1 "$T/killed")"
  tail -n 2 "$T/killed" | grep -q "\"$1\"" || fail "killed elsewhere: $(tail -n 3 "$T/killed")"
}
entries() { sl log --json 2>/dev/null | jq '[.entries[] | select(.kind == "commit" and .commit == 1)] | length'; }

first() {
  swap
  strace -qq -o "$T/renames" -e trace=rename,renameat,renameat2,linkat "$STOPLOG" commit >/dev/null
  same 1 "$(entries)"
  swapped
  sl run --quiet -- mv a/f2 g
  HELD=$(sl status --json | jq -c '[.changes[] | [.kind, .path, .from]]')
}
swapped() {
  same f2 "$(ls a)" 'the real tree'
  same f1 "$(ls b)" 'the real tree'
}
check_told() {
  sl status >/dev/null 2>&1
  swapped
  sl run --quiet -- mv a/f2 g
  local times
  for times in once twice; do
    same "$HELD" "$(sl status --json | jq -c '[.changes[] | [.kind, .path, .from]]')" "$1, told $times"
    same two "$(sl cat g)"
    same 1 "$(entries)" "$1, told $times: entries of the record"
    # Whoever told the draft died before this.
    rm "$XDG_STATE_HOME"/stoplog/commits/*/commits/1.rebased
  done
  sl log --verify >/dev/null
}

workspace "$T/w1"
first
workspace "$T/w2"
swap
kill_at 1.commit
check_told 'killed before its record'
sl stop >/dev/null 2>&1 || true

# The draft has it, and the note that it does is lost; gc comes in between.
workspace "$T/w4"
swap
kill_at 1.rebased
check_told 'killed before its note'
sl gc >/dev/null
rm -f "$XDG_STATE_HOME"/stoplog/commits/*/commits/1.rebased
for times in once twice; do
  same "$HELD" "$(sl status --json | jq -c '[.changes[] | [.kind, .path, .from]]')" "after gc, told $times"
  same two "$(sl cat g)"
  rm "$XDG_STATE_HOME"/stoplog/commits/*/commits/1.rebased
done
