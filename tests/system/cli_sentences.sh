#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Sentences of the contract that no other script holds: what dangers ask for,
# which draft is current, what is stale, whose commit is undone, what goes back.
. "$(dirname "$0")/lib.sh" || exit 1
. "$TOP/tests/tools/tty.sh"
needs git jq strace
needs_fuse

decision() { sl status --json | jq -r --arg p "$1" '.changes[] | select(.path == $p).decision'; }
held() { sl "$@" status --json | jq -r '[.changes[].path] | join(" ")'; }
export ci=.github/workflows/ci.yml

# A danger is approved by its own name or with --danger; --all and directories
# skip it and say so.
dangers() {
  sl run --quiet -- sh -c "mkdir -p .github/workflows; echo on: push >$ci; echo x >a; echo y >src/b"
  exits 4 sl approve .github >"$T/out" 2>"$T/err"
  grep -qx "  $ci" "$T/out" && grep -q '^hint: name the file itself' "$T/err" || fail "$(cat "$T/out" "$T/err")"
  same none "$(decision $ci)"
  for words in --all .; do
    sl approve "$words" >"$T/out" 2>/dev/null
    grep -q '^approved 2 changes' "$T/out" && grep -A1 'a danger each' "$T/out" | grep -qx "  $ci" ||
      fail "$words: $(cat "$T/out")"
    same 'none approved approved' "$(decision $ci) $(decision a) $(decision src/b)"
  done
  same "[\"$ci\"]" "$(sl approve --all --json | jq -c .dangers)"
  sl approve $ci >/dev/null 2>&1
  same approved "$(decision $ci)"
  sl reject $ci >/dev/null 2>&1
  sl run --quiet -- sh -c "echo more >>$ci"
  sl approve --all --danger >/dev/null 2>&1
  same approved "$(decision $ci)" '--danger'
}

# `commit -a` on a terminal asks for all, then for each danger by its name.
asked() {
  sl run --quiet -- sh -c "mkdir -p .github/workflows .vscode; echo on: push >$ci
    echo {} >.vscode/tasks.json; echo x >a"
  tty_start 100 30 "cd '$PWD'; '$STOPLOG' commit -a; echo exit \$?"
  tty_sees 'approve and commit 1 change? [y/N]'
  tty_send y Enter
  tty_sees "danger: $ci: "
  tty_send y Enter
  tty_sees 'danger: .vscode/tasks.json: '
  tty_send n Enter
  tty_sees 'exit 4'
  tty_sees 'a danger is not approved: .vscode/tasks.json'
  tty_end
  test ! -e a && test ! -e $ci || fail 'a part was written'
  # The end of input is no answer, and what follows has a line of its own.
  tty_start 100 30 "cd '$PWD'; '$STOPLOG' commit -a; echo exit \$?"
  tty_sees '[y/N]'
  tty_send C-d
  tty_sees 'exit 1'
  tty_matches '^stoplog: nothing was approved'
  tty_end
  same none "$(decision $ci)" 'nothing was approved either'
  tty_start 100 30 "cd '$PWD'; '$STOPLOG' commit -a; echo exit \$?"
  tty_sees '[y/N]'
  tty_send y Enter y Enter y Enter
  tty_sees 'exit 0'
  tty_end
  test -e a && test -e $ci && test -e .vscode/tasks.json
}

# A dry run of -a asks nobody: it approves nothing.
dry() {
  sl run --quiet -- sh -c 'echo x >a; echo y >b'
  sl commit -a --dry-run >"$T/out" 2>"$T/err" </dev/null || fail "$(cat "$T/err")"
  grep -q 'a' "$T/out" || fail "$(cat "$T/out")"
  same none "$(decision a)"
  test ! -e a
  sl run --quiet -- sh -c "mkdir -p .github/workflows; echo on: push >$ci"
  exits 4 sl commit -a --dry-run >"$T/out" 2>"$T/err" </dev/null
  grep -q "a danger is not approved: $ci" "$T/err" || fail "$(cat "$T/err")"
}

# Only a change of an approved path makes an approval stale.
stale() {
  sl run --quiet -- sh -c 'echo 1 >one; echo 2 >two'
  sl approve one >/dev/null 2>&1
  sl run --quiet -- sh -c 'echo 3 >>two; echo 4 >three'
  same false "$(sl status --json | jq .stale)"
  sl commit >/dev/null 2>&1
  same 1 "$(cat one)"
  test ! -e two
  sl approve two >/dev/null 2>&1
  sl run --quiet -- sh -c 'echo 5 >>two'
  same true "$(sl status --json | jq .stale)"
  exits 3 sl commit 2>/dev/null
  test ! -e two
}

# The current draft is the newest that is open; unknown names are errors
# everywhere but where one is started.
drafts() {
  sl -d old run --quiet -- sh -c 'echo o >o'
  sl -d mid run --quiet -- sh -c 'echo m >m'
  sl -d new run --quiet -- sh -c 'echo n >n'
  same n "$(held)"
  sl commit -a -y >/dev/null 2>&1
  same m "$(held)" 'the newest was committed'
  sl discard -y >/dev/null 2>&1
  same o "$(held)" 'and the next discarded'
  local words
  for words in status diff log review 'approve o' 'reject o' commit 'discard -y' ps stop \
    'cat o' snapshot rollback 'fork x' unmount "export $T/x"; do
    # shellcheck disable=SC2086
    exits 2 sl -d nobody $words >"$T/out" 2>"$T/err"
    grep -q "cannot find draft 'nobody'" "$T/err" || fail "$words: $(cat "$T/err")"
  done
  for words in 'switch nobody' 'rm -y nobody'; do
    # shellcheck disable=SC2086
    exits 2 sl $words 2>/dev/null
  done
  # The latest commit of the workspace is undone, whichever draft made it.
  sl -d old commit -a -y >/dev/null 2>&1
  sl -d third run --quiet -- sh -c 'echo t >t'
  same "$(printf 'n\no')" "$(ls n o)"
  sl -d third undo >/dev/null 2>&1
  test ! -e o && test -e n || fail 'not the latest commit'
  sl -d third undo >/dev/null 2>&1
  test ! -e n || fail 'not the one before'
}

# Its daemon ends at once with a draft.
ends() {
  local pid
  sl -d one run --quiet -- sh -c 'echo 1 >one'
  pid=$(sl drafts --json | jq '.drafts[0].daemon')
  kill -0 "$pid"
  sl -d one discard -y >/dev/null 2>&1
  not kill -0 "$pid" 2>/dev/null
  sl -d two run --quiet -- sh -c 'echo 2 >two'
  pid=$(sl drafts --json | jq '.drafts[] | select(.name == "two").daemon')
  # It asks while work is in it: what was approved and not committed is work.
  sl approve two >/dev/null 2>&1
  exits 1 sl rm two </dev/null 2>/dev/null
  sl rm -y two 2>/dev/null
  not kill -0 "$pid" 2>/dev/null
  sl -d empty run --quiet -- true
  sl rm empty </dev/null 2>/dev/null || fail 'asked for an empty draft'
}

# Back to before the last command, without a question; numbers go on.
back() {
  sl run --quiet -- sh -c 'echo 1 >one'
  sl run --quiet -- sh -c 'echo 2 >two'
  sl rollback </dev/null >/dev/null 2>&1
  same one "$(held)"
  sl run --quiet --report "$T/report" -- sh -c 'echo 3 >three'
  same '3 @3' "$(jq -r '"\(.command) \(.mark_before)"' "$T/report")"
  same 'one two' "$(sl cat @1.:one >/dev/null && sl rollback @2. >/dev/null 2>&1 && held)"
  sl rollback @3. >/dev/null 2>&1
  same 'one three' "$(held)"
}

# What the log counts of a command is what its report and the list do.
counted() {
  sl run --quiet --report "$T/report" -- sh -c 'mkdir -p d/e/f; echo 1 >d/e/f/1; echo 2 >d/2; mkdir empty'
  same 3 "$(sl status --json | jq '.changes | length')"
  same 3 "$(jq .changed "$T/report")"
  same 3 "$(sl log --json | jq '.entries[0].changed')"
}

# -C is git's: one from where the one before led, and an empty one nowhere.
# A PATH may name the workspace by any of its names.
places() {
  mkdir -p src/deep
  sl -C src -C deep run --quiet -- sh -c 'echo x >here'
  same src/deep/here "$(held)"
  same src/deep/here "$(held -C '')"
  ln -s "$PWD" "$T/alias-$MODE"
  (cd "$T/alias-$MODE" && sl approve "$PWD/src" >/dev/null 2>&1) || fail 'through a link'
  same approved "$(decision src/deep/here)"
  exits 2 sl diff "$T/alias-$MODE/../x" 2>/dev/null
  # Without git the current directory is the workspace.
  mkdir -p "$T/plain-$MODE/sub"
  cd "$T/plain-$MODE/sub"
  sl run --quiet -- sh -c 'echo p >p; pwd' >"$T/out"
  same "$PWD" "$(cat "$T/out")"
  same "$PWD p" "$(sl status --json | jq -r '"\(.workspace) \(.changes[].path)"')"
  # The one above overlaps it, and says so.
  exits 4 sl -C .. run --quiet -- true 2>"$T/err"
  grep -q 'has an open draft and overlaps it' "$T/err" || fail "$(cat "$T/err")"
  # Who looks from the wrong directory is told of the right one.
  mkdir deep
  local words where
  for where in .. deep; do
    for words in status diff log commit; do
      sl -C "$where" "$words" >"$T/out" 2>"$T/err" || [ "$words" = commit ]
      grep -q "^hint: draft .* is over '$PWD': go there" "$T/err" || fail "$where $words: $(cat "$T/err")"
    done
  done
}

# Characters are shown whole, wherever a piece of the file ends.
whole_characters() {
  sl run --quiet -- sh -c 'head -c 262143 /dev/zero | tr "\0" x >long; echo é\ end >>long; printf "\303" >cut'
  script -qec "'$STOPLOG' cat long" /dev/null </dev/null | tail -c 20 | tr -d '\r' >"$T/out"
  grep -q 'xé end' "$T/out" || fail "$(cat "$T/out")"
  script -qec "'$STOPLOG' cat cut" /dev/null </dev/null >"$T/out"
  grep -qF '\xc3' "$T/out" || fail "$(cat "$T/out")"
}

# Whoever waits for a commit or its undo is told that it goes on.
waits() {
  sl run --quiet -- sh -c 'echo x >a'
  sl approve a >/dev/null 2>&1
  local slowly="strace -f -o /dev/null -e trace=syncfs -e inject=syncfs:delay_enter=1500000 $STOPLOG"
  tty_start 100 30 "cd '$PWD'; $slowly commit; echo exit \$?"
  tty_matches '^committing: [1-9] s'
  tty_sees 'exit 0'
  tty_lacks committing
  tty_end
  tty_start 100 30 "cd '$PWD'; $slowly undo; echo exit \$?"
  tty_matches '^taking it back: [1-9] s'
  tty_sees 'exit 0'
  tty_lacks 'taking it back'
  tty_end
}

for each in dangers dry stale drafts ends back counted places whole_characters; do
  both_modes "$each"
done
workspace "$T/w-asked"
asked
workspace "$T/w-waits"
waits
