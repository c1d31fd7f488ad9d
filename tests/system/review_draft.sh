#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A draft reviewed, decided hunk by hunk and committed from the screen and by
# `approve -p`: what was approved and nothing else is in the real tree.
# ctest: timeout 600
. "$(dirname "$0")/lib.sh" || exit 1
. "$TOP/tests/tools/tty.sh"
needs jq
needs_fuse

start_work() {
  seq 60 >numbers
  git add numbers && git commit -qm numbers
  sl run --quiet -- sh -c "
    sed -i -e 5s/5/five/ -e 30s/30/thirty/ -e 50s/50/fifty/ numbers
    echo new >added; rm README.md
    mkdir -p .github/workflows; echo 'on: push' >.github/workflows/ci.yml"
}

by_screen() {
  start_work
  tty_start 100 30 "cd $PWD; $STOPLOG review; echo exit \$?"
  tty_sees '4 of 4 undecided'
  tty_sees '#1'
  tty_send / numbers Enter
  tty_sees '@@ -2,7 +2,7 @@'
  tty_send i
  tty_sees 'last changed by command 1: sh -c'
  tty_send Escape
  tty_send J y
  tty_sees 'partial'
  tty_send x 'thirty is ugly' Enter
  tty_send / added Enter y
  tty_send '!' x 'no CI' Enter
  tty_sees '✗!'
  tty_send q
  tty_sees 'exit 0'
  tty_end
  same '5' "$(sed -n 5p numbers)" 'nothing is written before a commit'
  sl status --json >status.json
  jq -e '.changes[] | select(.path == "numbers") | .decision == "partial"' status.json
  jq -e '.changes[] | select(.path | endswith("ci.yml")) | .decision == "rejected"' status.json
  sl run --quiet -- grep -q 'no CI' /run/stoplog/rejections ||
    fail 'the agent cannot read why'
  # One entry for what was approved, and one for each reason.
  sl log --json >log.json
  jq -e '[.entries[] | select(.kind == "approve")] | length == 1' log.json
  jq -e '[.entries[] | select(.kind == "reject") | [.reason, .paths]] ==
    [["no CI", [".github/workflows/ci.yml"]], ["thirty is ugly", ["numbers"]]]' log.json
  prints 'reject .*thirty is ugly .*numbers' sl log

  # Decisions are there the next time; what was seen is known; commit.
  tty_start 100 30 "cd $PWD; $STOPLOG review; echo exit \$?"
  tty_sees '±'
  tty_sees '✗!'
  tty_send c
  tty_sees 'commit 2 files'
  tty_send y
  tty_sees 'committed 2 changes'
  tty_sees 'exit 0'
  tty_end
  same five "$(sed -n 5p numbers)" 'the approved hunk'
  same 30 "$(sed -n 30p numbers)" 'the rejected hunk'
  same 50 "$(sed -n 50p numbers)" 'the undecided hunk'
  same new "$(cat added)"
  test -e README.md || fail 'an undecided deletion was carried out'
  test ! -e .github || fail 'a rejected danger was committed'
  sl undo >/dev/null
  same 5 "$(sed -n 5p numbers)" 'undone'
}

by_prompt() {
  start_work
  # Dangers and deletions first: ci.yml, README.md, added, numbers.
  printf '%s\n' n x 'keep it' y y n y | sl approve -p >out
  grep -q 'DANGER' out || fail "$(cat out)"
  sl commit >/dev/null
  same five "$(sed -n 5p numbers)"
  same 30 "$(sed -n 30p numbers)"
  same fifty "$(sed -n 50p numbers)"
  same new "$(cat added)"
  test -e README.md
  test ! -e .github
}

# `n` is no verdict: `commit -a` takes that hunk; the one that `x` rejected not.
undecided() {
  seq 60 >f
  sl run --quiet -- sed -i 's/^5$/five/; s/^30$/thirty/; s/^55$/fifty-five/' f
  printf '%s\n' y n x 'no such word' | sl approve -p >out
  same partial "$(sl status --json | jq -r '.changes[0].decision')"
  sl status >out 2>&1
  grep -q '1 change to decide' out || fail "$(cat out)"
  # A plain commit takes what is approved; the rest stays what it was.
  sl commit >/dev/null
  same 'five 30 55' "$(echo $(sed -n '5p;30p;55p' f))"
  same partial "$(sl status --json | jq -r '.changes[0].decision')"
  sl status >out 2>&1
  grep -q '1 change to decide' out || fail "$(cat out)"
  sl commit -a -y >/dev/null
  same 'five thirty 55' "$(echo $(sed -n '5p;30p;55p' f))"
  same rejected "$(sl status --json | jq -r '.changes[0].decision')"
}

# Each hunk names the command that made it; a line that two commands made names
# both, and so does the file's page.
makers() {
  seq 60 >numbers
  git add numbers && git commit -qm numbers
  sl run --quiet -- sed -i 5s/5/five/ numbers
  sl run --quiet -- sed -i 30s/30/thirty/ numbers
  sl run --quiet -- sh -c 'sed -i -e 5s/five/FIVE/ -e 50s/50/fifty/ numbers; echo x >other'
  tty_start 100 40 "cd $PWD; $STOPLOG review; echo exit \$?"
  tty_send / numbers Enter
  tty_matches '@@ -2,7 +2,7 @@ .* #1 #3$'
  tty_matches '@@ -27,7 +27,7 @@ .* #2$'
  tty_matches '@@ -47,7 +47,7 @@ .* #3$'
  tty_send J J i
  tty_sees 'this hunk was made by command 2: sed -i 30s'
  tty_send Escape
  tty_send q
  tty_sees 'exit 0'
  tty_end
}

# What changed since the last look is marked: the file in the list, and of its
# hunks the new one alone.
looked() {
  seq 60 >numbers
  git add numbers && git commit -qm numbers
  sl run --quiet -- sh -c 'sed -i 5s/5/five/ numbers; echo a >other'
  tty_start 100 40 "cd $PWD; $STOPLOG review; echo exit \$?"
  tty_sees '2 of 2 undecided'
  tty_send ']'
  tty_sees '+a'
  tty_send q
  tty_sees 'exit 0'
  tty_end
  sl run --quiet -- sed -i 40s/40/forty/ numbers
  tty_start 100 40 "cd $PWD; $STOPLOG review; echo exit \$?"
  tty_sees '*M numbers'
  tty_sees ' A other'
  tty_sees 'changed since you'
  tty_matches '@@ -37,7 +37,7 @@.* new$'
  not grep -q '@@ -2,7 +2,7 @@.*new' <(tty_screen)
  tty_send q
  tty_sees 'exit 0'
  tty_end
  # Seen once more, nothing is new.
  tty_start 100 40 "cd $PWD; $STOPLOG review; echo exit \$?"
  tty_sees '@@ -37,7 +37,7 @@'
  not grep -q '\*M numbers\|changed since you' <(tty_screen)
  tty_send q
  tty_sees 'exit 0'
  tty_end
}

# Colours, unless the user wants none.
colours() {
  sl run --quiet -- sh -c 'echo more >>README.md'
  painted() { tmux_ capture-pane -p -e | grep -q $'\033\\[[0-9;]*3[0-7]m'; }
  for way in NO_COLOR=1 TERM=screen-256color; do
    tty_start 80 24 "cd $PWD; $way $STOPLOG review; echo exit \$?"
    tty_sees '+more'
    case $way in
      NO_COLOR=1) not painted ;;
      *) painted || fail 'no colours' ;;
    esac
    tty_send q
    tty_sees 'exit 0'
    tty_end
  done
}

nothing() {
  tty_start 80 24 "cd $PWD; $STOPLOG review; echo exit \$?"
  tty_sees 'there is no draft'
  tty_sees 'exit 2'
  tty_end
  sl run --quiet -- true
  tty_start 80 24 "cd $PWD; $STOPLOG review; echo exit \$?"
  tty_sees 'nothing to review'
  tty_sees 'exit 0'
  tty_end
}

daemon_pid() { sl drafts --json | jq '.drafts[0].daemon // empty'; }

# A review may be open for hours, and the daemon that it began with be gone.
daemon_gone() {
  start_work
  tty_start 100 30 "cd $PWD; $STOPLOG review; echo exit \$?"
  tty_sees '4 of 4 undecided'
  kill -KILL "$(daemon_pid)"
  tty_send '!' x 'no CI' Enter
  tty_sees '✗!'
  tty_send / added Enter y c
  tty_sees 'commit 1 file'
  tty_send y
  tty_sees 'committed 1 change'
  tty_sees 'exit 0'
  tty_end
  same new "$(cat added)"
  sl run --quiet -- grep -q 'no CI' /run/stoplog/rejections
  # Who only leaves has decided, too.
  tty_start 100 30 "cd $PWD; $STOPLOG review; echo exit \$?"
  tty_sees '2 of 3 undecided'
  kill -KILL "$(daemon_pid)"
  tty_send / numbers Enter n x 'not these' Enter q
  tty_sees 'exit 0'
  tty_end
  sl run --quiet -- grep -q 'not these' /run/stoplog/rejections
}

# An agent that began to work after the review did learns why.
daemon_came() {
  start_work
  kill -TERM "$(daemon_pid)"
  eventually has_no_daemon
  tty_start 100 30 "cd $PWD; $STOPLOG review; echo exit \$?"
  tty_sees '4 of 4 undecided'
  "$STOPLOG" run --quiet --time 60s -- sh -c 'until grep "no CI" /run/stoplog/rejections; do sleep 0.1; done' >"$T/told" 2>&1 &
  eventually has_daemon
  tty_send '!' x 'no CI' Enter
  tty_sees '✗!'
  tty_send q
  tty_sees 'exit 0'
  tty_end
  wait $! || fail "not told: $(cat "$T/told")"
  grep -q 'ci.yml: no CI' "$T/told" || fail "$(cat "$T/told")"
}
has_daemon() { [ -n "$(daemon_pid)" ]; }
has_no_daemon() { [ -z "$(daemon_pid)" ]; }

for each in by_screen by_prompt undecided makers looked colours nothing \
  daemon_gone daemon_came; do
  (
    workspace "$T/w-$each"
    "$each"
  )
done
