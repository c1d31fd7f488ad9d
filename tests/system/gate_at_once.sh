#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A commit beside others: a writer in the draft, a second commit, git in the
# real repository, an editor, a death; and places that cannot be written to.
. "$(dirname "$0")/lib.sh" || exit 1
needs jq git script
needs_fuse

counter_grows() {
  local was
  was=$(sl cat counter | wc -l)
  eventually sh -c "[ \"\$('$STOPLOG' cat counter | wc -l)\" -gt $was ]"
}
# Later writes stay held, the writer sees neither an error nor a wrong byte.
beside_a_writer() {
  seq 1 1000 >steady
  git add -A && git commit -qm more
  sl run --quiet -- sh -c '
    echo first >counter; echo edited >>README.md
    n=0
    while [ ! -e stop ]; do
      n=$((n + 1)); echo $n >>counter || exit 41
      [ "$(tail -n 1 counter)" = $n ] || exit 42
      cmp -s README.md - <<END || exit 43
hello
edited
END
      [ "$(wc -l <steady)" = 1000 ] || exit 44
    done' &
  local writer=$!
  # jq -e takes no input at all for a success.
  eventually sh -c "'$STOPLOG' status --json 2>/dev/null | jq '[.changes[].path] == [\"README.md\", \"counter\"]' | grep -q true"
  sl approve README.md
  sl commit >/dev/null
  same edited "$(tail -n 1 README.md)"
  test ! -e counter || fail 'what was not approved came along'
  same 1 "$(sl status --json | jq '.changes | length')"
  # The writer goes on after it, and after an approval, which is void then.
  counter_grows
  sl approve counter
  counter_grows
  exits 3 sl commit 2>/dev/null
  test ! -e counter
  sl stop >/dev/null 2>&1 || true
  local got=0
  wait "$writer" || got=$?
  case $got in 4[1-4]) fail "the writer saw a hiccup: $got" ;; esac
}
both_modes beside_a_writer

two_at_once() {
  sl -d one run --quiet -- sh -c 'for i in $(seq 50); do echo 1 >a$i; done'
  sl -d two run --quiet -- sh -c 'for i in $(seq 50); do echo 2 >b$i; done'
  sl -d one approve --all >/dev/null
  sl -d two approve --all >/dev/null
  sl -d one commit >"$T/one" 2>&1 &
  local first=$! status=0
  sl -d two commit >"$T/two" 2>&1 || fail "$(cat "$T/two")"
  wait "$first" || status=$?
  [ "$status" -eq 0 ] || fail "$(cat "$T/one")"
  same 100 "$(find . -maxdepth 1 -name '[ab][0-9]*' | wc -l)"
}
both_modes two_at_once

# The agent commits in the draft, the user in the real repository.
both_commit() {
  sl run --quiet -- sh -c 'echo agent >agent && git add agent &&
    git -c user.name=a -c user.email=a@a commit -qm "by the agent" && git branch topic'
  local theirs
  theirs=$(sl run --quiet -- git rev-parse HEAD)
  echo user >user && git add user && git commit -qm 'by the user'
  local ours
  ours=$(git rev-parse HEAD)
  sl approve --all >/dev/null
  sl commit >"$T/out" 2>&1 || fail "$(cat "$T/out")"
  same "$ours" "$(git rev-parse HEAD)" 'the user lost his commit'
  same "$theirs" "$(git rev-parse topic)" 'the branch of the agent'
  same 'by the agent' "$(git log -1 --format=%s topic)"
  grep -q main "$T/out" || fail "the ref that moved is not named: $(cat "$T/out")"
  git fsck --strict >/dev/null 2>&1 || fail 'the repository is damaged'
  same user "$(cat user)"
  same agent "$(cat agent)"
  test -z "$(find .git -name '*.lock')" || fail 'a lock file remains'
}
# git packs refs by itself; a branch that was deleted meanwhile stays deleted.
packed_and_deleted() {
  git branch keep && git branch gone && git branch also
  sl run --quiet -- sh -c 'git pack-refs --all && git branch topic'
  git branch -qD gone && git pack-refs --all
  sl status >"$T/out" 2>&1
  grep -q 'gone deleted since' "$T/out" || fail "$(cat "$T/out")"
  sl approve --all --danger >/dev/null
  sl commit >"$T/out" 2>&1 || fail "$(cat "$T/out")"
  same 'also keep main topic' "$(git branch --format='%(refname:short)' | xargs)"
  grep -q 'refs/heads/gone moved in the real repository to nothing' "$T/out" || fail "$(cat "$T/out")"
  ! grep -q 'heads/keep' "$T/out" || fail "told of what is the same on both sides: $(cat "$T/out")"
  git fsck --strict >/dev/null 2>&1 || fail 'the repository is damaged'
}
both_modes packed_and_deleted

places() {
  mkdir ro && echo o >ro/f && echo t >top
  git add -A && git commit -qm more
  sl run --quiet -- sh -c 'echo n >ro/f; echo n >top; echo n >new'
  sl approve --all
  if [ "$MODE" = user ]; then
    # Not ours to write: all or nothing, and the path is named.
    chmod 555 ro
    exits 6 sl commit 2>"$T/err"
    grep -q 'ro' "$T/err" || fail "no name: $(cat "$T/err")"
    same 'o t' "$(cat ro/f top | xargs)"
    test ! -e new
    chmod 755 ro
  fi
  # A file that appeared in the way.
  echo person >new
  exits 3 sl commit 2>"$T/err"
  grep -q 'new appeared' "$T/err" || fail "$(cat "$T/err")"
  same 'o t' "$(cat ro/f top | xargs)"
  rm new
  # A parent that is a symlink now.
  mv ro elsewhere && ln -s elsewhere ro
  exits 3 sl commit 2>/dev/null
  same o "$(cat elsewhere/f)"
  rm ro && mv elsewhere ro
  sl commit >/dev/null
  same 'n n n' "$(cat ro/f top new | xargs)"
}
both_modes places

having() { { grep -l "$1" f* m/* 2>/dev/null || true; } | wc -l; }

# Killed in the middle, again and again: the next command makes it whole.
killed() {
  local i
  for i in $(seq 1 300); do echo "old $i" >"f$i"; done
  git add -A && git commit -qm many
  sl run --quiet -- sh -c 'for f in f*; do echo new >$f; done; rm f7; mkdir m; mv f9 m/f9'
  sl approve --all --danger >/dev/null
  local delay killed=0
  for delay in 0.01 0.02 0.03 0.05 0.08; do
    # The program itself, not a shell around it.
    "$STOPLOG" commit >/dev/null 2>&1 &
    local pid=$!
    sleep "$delay"
    kill -9 "$pid" 2>/dev/null && killed=$((killed + 1))
    wait "$pid" 2>/dev/null || true
    sl status >/dev/null 2>&1
    # All old or all new.
    local old new
    old=$(having old)
    new=$(having new)
    case "$old $new" in '300 0') ;; '0 299') break ;; *) fail "a mixture: $old old, $new new" ;; esac
    test -z "$(find . -name '.stoplog*')" || fail 'a temporary file remains'
  done
  [ "$new" -gt 0 ] || sl commit >/dev/null
  same 299 "$(having new)"
  sl log --verify >/dev/null
  sl undo >/dev/null
  same 300 "$(having old)"
}
both_modes killed

# Another file system beneath the workspace.
mounted() {
  [ "$(id -u)" -eq 0 ] || skip 'only root can mount'
  workspace "$T/w-mounted"
  mkdir m && mount -t tmpfs -o size=4m none m
  echo old >m/f && echo old >f
  sl run --quiet -- sh -c 'echo new >m/f; echo new >f; echo n >m/n'
  sl approve --all >/dev/null
  sl commit >/dev/null
  same 'new new n' "$(cat f m/f m/n | xargs)"
  test -z "$(find . -name '.stoplog*')" || fail 'a temporary file remains'
  sl undo >/dev/null
  same 'old old' "$(cat f m/f | xargs)"
  test ! -e m/n
  # One that may not be written to is named, and nothing is left to clear up.
  sl run --quiet -- sh -c 'echo new >m/f; echo new >f'
  sl approve --all >/dev/null
  mount -o remount,ro m
  exits 6 sl commit 2>"$T/err"
  grep -q 'stage in m: Read-only' "$T/err" || fail "no name: $(cat "$T/err")"
  grep -q '^hint: .*mounted read-only' "$T/err" || fail "$(cat "$T/err")"
  ! grep -q 'temporary files' "$T/err" || fail "$(cat "$T/err")"
  sl status >"$T/out" 2>&1
  ! grep -q interrupted "$T/out" || fail "$(cat "$T/out")"
  same 'old old' "$(cat f m/f | xargs)"
  mount -o remount,rw m
  sl commit >/dev/null
  same 'new new' "$(cat f m/f | xargs)"
}
mounted

both_modes both_commit

# The draft deleted a file and made it anew: its base was taken then, while the
# real file was still what had been deleted.
both_replace() {
  seq 1 9 >both && seq 1 9 >moved && seq 1 9 >late
  git add -A && git commit -qm more
  sl run --quiet -- sh -c 'sed s/^5$/agent/ both >/tmp/x; rm both; cp /tmp/x both
    sed s/^5$/agent/ moved >x; rm moved; mv x moved; rm late; echo n >n'
  sed -i 's/^9$/person/' both moved late
  # Replaced before it was made anew: there is no base that was seen.
  sl run --quiet -- cp /tmp/x late
  sl status --json | jq -e '[.changes[] | select(.drift != null).path] == ["both", "late", "moved"]' >/dev/null ||
    fail "no drift: $(sl status --json)"
  sl diff >/dev/null
  sl approve --all
  exits 3 sl commit 2>"$T/err"
  grep -q 'both has other content' "$T/err" || fail "$(cat "$T/err")"
  exits 3 sl commit --merge 2>"$T/err"
  grep -q 'late' "$T/err" || fail "$(cat "$T/err")"
  ! grep -q 'both\|moved' "$T/err" || fail "$(cat "$T/err")"
  same 'person person person' "$(sed -sn 9p both moved late | xargs)"
  test ! -e n
  sl reject late
  sl commit --merge >/dev/null
  same n "$(cat n)"
  local name
  for name in both moved; do
    same 'agent person' "$(sed -n '5p;9p' $name | xargs)" "$name"
  done
  same '5 person' "$(sed -n '5p;9p' late | xargs)"
}
both_modes both_replace

# Somebody commits on this workspace until $T/go is there; whoever comes now has
# looked at the draft, and waits.
workspace_is_busy() {
  rm -f "$T/go" "$T/busy"
  (
    flock 9
    : >"$T/busy"
    until [ -e "$T/go" ]; do sleep 0.02; done
  ) 9<. &
  eventually test -e "$T/busy"
}
turn_is_taken() {
  ! flock -n "$XDG_STATE_HOME/stoplog/drafts/$1/turn.lock" true
}
held() { for held in "$@"; do sl cat "$held"; done | xargs; }
# Two states of p, of which the second is approved; `keep` is not.
two_states() {
  echo v0 >p && echo q0 >q
  git add -A && git commit -qm more
  sl run --quiet -- sh -c 'echo v1 >p; echo k >keep'
  sl run --quiet -- sh -c 'echo v2 >p; echo q1 >q; echo n >n'
  sl approve p q n >/dev/null 2>&1
}
rollback_during_a_commit() {
  two_states
  workspace_is_busy
  sl commit >"$T/commit" 2>&1 &
  local commit=$! rollback got=0
  eventually turn_is_taken "$(sl drafts --json | jq -r '.drafts[0].id')"
  sl rollback @2 >"$T/rollback" 2>&1 &
  rollback=$!
  sleep 0.2
  : >"$T/go"
  wait "$commit" || fail "$(cat "$T/commit")"
  wait "$rollback" || fail "$(cat "$T/rollback")"
  same 'v2 q1 n' "$(cat p q n | xargs)" 'the commit is lost'
  same 'v1 q0 k' "$(held p q keep)" 'the rollback is lost'
  same 'D n A keep M p M q' \
    "$(sl status 2>/dev/null | awk '/^[ADM] / { print $1, $2 }' | xargs)"
  # What came back for a moment stays when the commit is taken back.
  sl undo >/dev/null 2>&1
  same 'v0 q0' "$(cat p q | xargs)"
  test ! -e n
  same 'v1 k' "$(held p keep)" 'the undo took a held change along'
  same 'A keep M p' \
    "$(sl status 2>/dev/null | awk '/^[ADM] / { print $1, $2 }' | xargs)"
  sl log --verify >/dev/null
}
both_modes rollback_during_a_commit

discard_during_a_commit() {
  two_states
  workspace_is_busy
  sl commit >"$T/commit" 2>&1 &
  local commit=$! discard
  eventually turn_is_taken "$(sl drafts --json | jq -r '.drafts[0].id')"
  sl discard -y p keep >"$T/discard" 2>&1 &
  discard=$!
  sleep 0.2
  : >"$T/go"
  wait "$commit" || fail "$(cat "$T/commit")"
  wait "$discard" || fail "$(cat "$T/discard")"
  same 'v2 q1 n' "$(cat p q n | xargs)"
  prints '^discarded 1 held change$' cat "$T/discard"
  same '' "$(sl status 2>/dev/null)"
}
both_modes discard_during_a_commit

# A person who is asked keeps nobody waiting, and approves what was shown.
rollback_before_the_answer() {
  two_states
  mkfifo "$T/answers"
  script -qec "'$STOPLOG' commit -a" /dev/null <"$T/answers" >"$T/tty" 2>&1 &
  local commit=$! got=0
  exec 8>"$T/answers"
  eventually grep -q 'approve and commit' "$T/tty"
  sl rollback @2 >/dev/null 2>&1 8>&-
  echo y >&8
  exec 8>&-
  wait "$commit" || got=$?
  same 3 "$got" "$(cat "$T/tty")"
  grep -q 'was rolled back since' "$T/tty" || fail "$(cat "$T/tty")"
  same 'v0 q0' "$(cat p q | xargs)" 'something was written'
  same 'v1 k' "$(held p keep)" 'the rollback is lost'
}
both_modes rollback_before_the_answer
