#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# From a run to a commit and back: decisions, dangers, drift, undo.
. "$(dirname "$0")/lib.sh" || exit 1
needs jq git
needs_fuse

decide_commit_undo() {
  sl run --quiet -- sh -c 'echo new >c; echo more >>README.md; mkdir -p d/e; echo z >d/e/f; rm src/main.c'
  test ! -e c || fail 'a write reached the real tree'
  same 4 "$(sl status --json | jq '.changes | length')"
  exits 1 sl status --exit-code 2>/dev/null
  exits 1 sl diff --exit-code >/dev/null

  # Without a decision nothing is committed.
  exits 1 sl commit
  sl approve c README.md
  sl reject d --reason 'no such directory'
  same approved "$(sl status --json | jq -r '.changes[] | select(.path == "c").decision')"
  same rejected "$(sl status --json | jq -r '.changes[] | select(.path == "d/e/f").decision')"
  prints 'no such directory' sl run --quiet -- cat /run/stoplog/rejections

  prints README.md sl commit --dry-run
  test ! -e c
  sl commit --receipt "$T/receipt.json"
  same new "$(cat c)"
  same "$(printf 'hello\nmore')" "$(cat README.md)"
  test -e src/main.c || fail 'what was not approved was deleted'
  test ! -e d
  same 1 "$(jq .commit "$T/receipt.json")"
  same 2 "$(sl status --json | jq '.changes | length')"

  # What the agent sees is what was committed, and it can go on.
  sl run --quiet -- sh -c 'grep -q more README.md && test ! -e src/main.c && echo again >>c'
  same 3 "$(sl status --json | jq '.changes | length')"

  # A later edit of an approved path makes the approval stale.
  sl approve c
  sl run --quiet -- sh -c 'echo third >>c'
  exits 3 sl commit
  same new "$(cat c)"

  # Drift of the real tree.
  sl approve c
  echo mine >c
  exits 3 sl commit
  same mine "$(cat c)"
  echo new >c
  sl approve c
  sl commit
  same 'new again third' "$(tr '\n' ' ' <c | sed 's/ $//')"

  sl undo
  same new "$(cat c)"
  sl undo
  test ! -e c
  same hello "$(cat README.md)"
  exits 2 sl undo
  sl log --verify
  sl log --json | jq -e '[.entries[].kind] | index("commit") and index("undo") and index("approve") and index("reject")' >/dev/null
  prints '^A  c$' sl show 1
  case $(sl show -z 1 | tr '\0' '|') in
  'A|c|'* | *'|A|c|'*) ;;
  *) fail 'no names' ;;
  esac
  exits 2 sl show 99
}

all_at_once() {
  sl run --quiet -- sh -c 'echo x >x; mkdir -p .git/hooks; echo "#!/bin/sh" >.git/hooks/pre-commit; chmod +x .git/hooks/pre-commit'
  # A danger is left over: nothing is written.
  exits 4 sl commit -a -y
  test ! -e x
  exits 1 sl commit -a </dev/null
  sl commit -a --danger -y
  test -e x
  test -x .git/hooks/pre-commit
  # Committed whole: the next run starts another draft.
  same committed "$(sl drafts --json | jq -r '.drafts[0].state')"
  sl status --json | jq -e '.changes == []' >/dev/null
  sl run --quiet -- true
  same 2 "$(sl drafts --json | jq '.drafts | length')"
}

by_digest() {
  sl run --quiet -- sh -c 'echo x >x'
  local digest
  digest=$(sl status --json | jq -r .digest)
  sl run --quiet -- sh -c 'echo y >y'
  exits 3 sl approve --digest "$digest"
  sl approve --digest "$(sl status --json | jq -r .digest)"
  sl commit
  test -e x -a -e y
}

# A keystroke a line at `approve -p` on a terminal of its own.
decide() {
  local keys=$1
  shift
  # A terminal that answers nothing, and so loses nothing that is typed ahead.
  printf "$keys" | TERM=dumb script -qec "'$STOPLOG' approve -p $*" /dev/null >"$T/prompt.log"
}

# Which command made which hunk of a file that several wrote.
made_by() {
  seq 100 >n
  sl run --quiet -- sed -i 's/^10$/ten/' n
  sl run --quiet -- sed -i 's/^50$/fifty/; s/^10$/&/' n
  sl run --quiet -- sed -i 's/^ten$/TEN/; s/^90$/ninety/' n
  decide 'n\nn\nn\n' n
  same 'by #1 #3;by #2;by #3;' "$(sed 's/\x1b\[[0-9;]*m//g; s/\r//' "$T/prompt.log" |
    grep -o 'by #.*' | tr '\n' ';')" 'makers'
}

hunk_by_hunk() {
  seq 100 >n
  sl run --quiet -- sh -c 'sed -i "s/^10$/ten/; s/^50$/fifty/; s/^90$/ninety/" n'
  decide 'y\nn\nq\n' n
  same partial "$(sl status --json | jq -r '.changes[0].decision')"
  sl commit
  same ten "$(grep '[a-z]' n)"
  # The rest is still held, over what was committed, in the same draft.
  same 'n 2 2' "$(sl status --json | jq -r '.changes[] | "\(.path) \(.lines_added) \(.lines_deleted)"')"
  same null "$(sl status --json | jq .changes[0].drift)"
  same 'ten fifty ninety' "$(sl run --quiet -- grep '[a-z]' n | tr '\n' ' ' | sed 's/ $//')"
  prints '^ 49$' sl diff --no-pager n
  not grep -q '^+ten' <(sl diff --no-pager n)
  # Taken back, all of it is held again.
  sl undo
  same '' "$(grep '[a-z]' n || true)"
  same 'n 3 3' "$(sl status --json | jq -r '.changes[] | "\(.path) \(.lines_added) \(.lines_deleted)"')"
  # And the undo taken back.
  sl undo 2
  same ten "$(grep '[a-z]' n)"
  same 'n 2 2' "$(sl status --json | jq -r '.changes[] | "\(.path) \(.lines_added) \(.lines_deleted)"')"
  # A drifted file that is not approved whole is not merged: what is held would
  # take the real edit back.
  decide 'y\nx\nno\n' n
  sed -i 's/^1$/uno/' n
  exits 3 sl commit --merge
  same 'uno ten' "$(grep '[a-z]' n | tr '\n' ' ' | sed 's/ $//')"
  sed -i 's/^uno$/1/' n
  # A hunk that was rejected stands against -a.
  sl commit -a -y
  same 'ten fifty' "$(grep '[a-z]' n | tr '\n' ' ' | sed 's/ $//')"
  sl approve n
  sl commit
  same 'ten fifty ninety' "$(grep '[a-z]' n | tr '\n' ' ' | sed 's/ $//')"
  sl status --json | jq -e '.changes == []' >/dev/null
}

# What stood there moved away, and something new took its place.
made_anew() {
  echo old >c
  mkdir lib
  echo 1 >lib/one
  echo 2 >lib/two
  sl run --quiet -- sh -c 'mv c d; echo new >c; mv lib lib_old; mkdir lib; echo new >lib/one; echo 3 >lib/three'
  sl commit -a -y
  same 'new old' "$(cat c d | tr '\n' ' ' | sed 's/ $//')"
  same '3 1 2 new' "$(cat lib/three lib_old/one lib_old/two lib/one | tr '\n' ' ' | sed 's/ $//')"
  sl status --json | jq -e '.changes == []' >/dev/null
  sl undo
  same 'old 1 2' "$(cat c lib/one lib/two | tr '\n' ' ' | sed 's/ $//')"
  test ! -e d -a ! -e lib_old -a ! -e lib/three
  # Only the new one is wanted: the move is needed for it.
  sl run --quiet -- sh -c 'mv lib lib_old; mkdir lib; echo new >lib/one'
  sl approve lib/one
  exits 4 sl commit 2>"$T/err"
  grep -q 'also needs: lib_old' "$T/err" || fail "no reason: $(cat "$T/err")"
  same 1 "$(cat lib/one)"
}

# `git gc` in the draft: once the pack is in the real repository, nothing is
# held any more, though the real one keeps its loose objects.
repacked() {
  sl run --quiet -- sh -c 'git gc -q --prune=now && ls .git/objects/pack/*.pack' >/dev/null
  same .git "$(sl status --json | jq -r '.changes[].path | rtrimstr("/")')"
  same '[]' "$(sl status --json | jq -c '.changes[0].risks')"
  sl commit -a -y >/dev/null
  sl status --json | jq -e '.changes == []' >/dev/null || fail "$(sl status)"
  ls .git/objects/pack/*.pack >/dev/null || fail 'the pack was not committed'
  git fsck --strict
  test -e ".git/objects/$(git rev-parse HEAD | sed 's,..,&/,')" || fail 'a real object is gone'
}

by_policy() {
  mkdir -p "$XDG_CONFIG_HOME/stoplog"
  printf '[gate]\nmode = "auto"\nauto_approve = ["docs/**"]\n' >"$XDG_CONFIG_HOME/stoplog/config.toml"
  sl run --quiet -- sh -c 'mkdir docs; echo x >docs/a; echo y >b'
  same x "$(cat docs/a)"
  test ! -e b || fail 'what the policy does not name was committed'
  printf '[gate]\nmode = "hold"\n' >"$XDG_CONFIG_HOME/stoplog/config.toml"
  exits 4 sl commit -a -y
  test ! -e b
  printf '[gate]\nalways_ask = ["b"]\n' >"$XDG_CONFIG_HOME/stoplog/config.toml"
  exits 4 sl commit -a -y
  sl approve b
  sl commit
  same y "$(cat b)"
  # Raised by its code: what is a warning elsewhere is asked for.
  printf '[gate]\ndangers = ["executable"]\n' >"$XDG_CONFIG_HOME/stoplog/config.toml"
  sl run --quiet -- sh -c 'echo x >tool; chmod +x tool'
  exits 4 sl commit -a -y
  test ! -e tool
  printf '[gate]\ndangers = ["no-such-risk"]\n' >"$XDG_CONFIG_HOME/stoplog/config.toml"
  exits 2 sl policy show 2>"$T/said"
  grep -q 'gate.dangers' "$T/said" || fail "$(cat "$T/said")"
  rm "$XDG_CONFIG_HOME/stoplog/config.toml"
  sl commit -a -y
  same x "$(cat tool)"
}

both_modes decide_commit_undo
both_modes all_at_once
both_modes by_digest
both_modes hunk_by_hunk
both_modes made_by
both_modes made_anew
both_modes repacked
both_modes by_policy
