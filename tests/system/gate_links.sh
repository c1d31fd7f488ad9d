#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Names of one file in the draft are names of one file in the real tree after a
# commit, and what they were after its undo.
. "$(dirname "$0")/lib.sh" || exit 1
needs jq git
needs_fuse

inode() { stat -c %i "$1"; }
linked() {
  local first
  first=$(inode "$1")
  shift
  local name
  for name in "$@"; do same "$first" "$(inode "$name")" "the file of $name"; done
}
apart() { [ "$(inode "$1")" != "$(inode "$2")" ] || fail "$1 and $2 are one file"; }
held() { sl status --json | jq -r '[.changes[].path] | join(" ")'; }

# New names of a file that is as it was.
of_a_real_file() {
  echo text >a
  chmod 640 a
  echo other >over
  touch -d '2001-02-03 04:05:06' a
  git add -A && git commit -qm more
  local before
  before=$(stat -c '%i %Y %a' a)
  sl run --quiet -- sh -c 'ln a b; mkdir -p n/e; ln a n/e/c; ln -f a over'
  same a "$(sl status --json | jq -r '.changes[] | select(.path == "b").link')"
  # Some of them first: the rest stays held, and is a name of the same.
  sl approve b over
  sl commit >/dev/null
  linked a b over
  same "$before 3" "$(stat -c '%i %Y %a %h' a)"
  same n/e/c "$(held)"
  same '4 4 text' "$(sl run --quiet -- sh -c 'echo $(stat -c %h a n/e/c) $(cat b)')"
  sl commit -a -y >/dev/null
  linked a b over n/e/c
  same '' "$(held)"
  same '4 text' "$(sl run --quiet -- sh -c 'echo $(stat -c %h over) $(cat n/e/c)')"
  # Seen by their names, they are one.
  sl run --quiet -- sh -c 'cat a over n/e/c >/dev/null; echo more >>b'
  sl commit -a -y >/dev/null
  linked a b over n/e/c
  same 'text more' "$(echo $(cat a))"
  sl undo >/dev/null
  linked a b over n/e/c
  same text "$(cat over)"
  sl undo >/dev/null
  test ! -e n
  linked a b over
  sl undo >/dev/null
  test ! -e b
  same 'text other' "$(echo $(cat a over))"
  same "1 640 1 644" "$(echo $(stat -c '%h %a' a over))"
  same '' "$(held)"
  same 1 "$(sl run --quiet -- stat -c %h a)"
  # The undo of an undo makes them links again, unless the file was edited.
  sl undo 6 >/dev/null
  linked a b over
  same '' "$(held)"
  sl undo 7 >/dev/null
  echo person >a
  sl undo 8 >/dev/null
  linked b over
  apart a b
  same 'person text' "$(echo $(cat a b))"
}
both_modes of_a_real_file

# New names of a new file, of one that was moved, of one with another mode.
of_what_changed() {
  echo m >m
  echo p >p
  git add -A && git commit -qm more
  local m p
  m=$(inode m) p=$(inode p)
  sl run --quiet -- sh -c '
    echo new >b; ln b a; mkdir d; ln b d/c
    mv m moved; ln moved a-of-m
    chmod 600 p; ln p a-of-p'
  sl commit -a -y >/dev/null
  linked a b d/c
  linked moved a-of-m
  linked p a-of-p
  same "$m $p" "$(inode moved) $(inode p)"
  same 600 "$(stat -c %a a-of-p)"
  same '' "$(held)"
  same '3 2 2' "$(sl run --quiet -- sh -c 'echo $(stat -c %h a moved p)')"
  sl undo >/dev/null
  same 'm p' "$(echo [amp]*)"
  same "$m 1 $p 1 644" "$(echo $(stat -c '%i %h' m p) $(stat -c %a p))"
  same '' "$(held)"
}
both_modes of_what_changed

# Two names of the real tree, both seen: they stay one through a write, and are
# one again after the undo.
of_two_real_names() {
  echo text >a
  ln a b
  echo text >c
  ln c unseen
  git add -A && git commit -qm more
  sl run --quiet -- sh -c 'cat a b >/dev/null; echo more >>b; echo more >>c'
  sl commit -a -y >/dev/null
  linked a b
  same 'text more' "$(echo $(cat a))"
  same text "$(cat unseen)"
  sl undo >"$T/out" 2>&1
  linked a b
  same 'text text' "$(echo $(cat b c))"
  grep -q 'c had other names' "$T/out" || fail "not told: $(cat "$T/out")"
}
both_modes of_two_real_names

# The file that is to get a name changed since: nothing is written, and a commit
# of the new name without it is possible when merging is asked for.
drifted() {
  echo text >a
  git add -A && git commit -qm more
  sl run --quiet -- sh -c 'ln a b; echo n >n'
  sl approve --all
  echo person >>a
  exits 3 sl commit 2>"$T/err"
  test ! -e b
  test ! -e n
  same 'text person' "$(echo $(cat a))"
}
both_modes drifted

# A setuid bit needs its name; without it the new name is a file of its own.
bits_by_name() {
  echo s >s
  chmod 4755 s
  git add -A && git commit -qm more
  sl run --quiet -- sh -c 'ln s t'
  exits 4 sl commit -a -y 2>/dev/null
  test ! -e t
  sl approve t
  sl commit >/dev/null
  linked s t
}
both_modes bits_by_name
