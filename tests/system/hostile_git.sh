#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# An agent that hides in the repository what it would not get approved in a
# file. Each part in a workspace of its own; names of parts run these alone.
# ctest: timeout 600
. "$(dirname "$0")/lib.sh" || exit 1
needs git python3 jq
needs_fuse

# The risks of a row, "danger CODE".
risks() { # risks PATH
  sl status --json |
    jq -r --arg p "$1" '.. | objects | select(.path? == $p) | .risks[]? |
      "\(.level) \(.code)"'
}
is_danger() { # is_danger PATH CODE
  grep -qx "danger $2" <<<"$(risks "$1")" ||
    fail "$1 is no danger $2: $(risks "$1" | tr '\n' ' ')"
}
is_quiet() {
  ! sl status --json | jq -r '.. | objects | .risks[]? |
    "\(.level) \(.code) \(.message)"' | grep '^danger' || fail "$1 is a danger"
}
within() { sl run --quiet -- bash -euc "$1"; }

links() {
  echo mine >"$T/outside"
  within 'git commit -q --allow-empty -m work
          ln -sf '"$T"'/outside .git/COMMIT_EDITMSG
          ln -sf '"$T"'/outside .git/logs/HEAD'
  is_danger .git/COMMIT_EDITMSG git-part
  is_danger .git/logs/HEAD symlink-outside
  exits 4 sl commit -a -y 2>"$T/out"
  for link in COMMIT_EDITMSG logs/HEAD; do
    grep -q "$link" "$T/out" || fail "no word of $link: $(cat "$T/out")"
  done
  test ! -L .git/COMMIT_EDITMSG || fail 'a link reached the real repository'
  test ! -L .git/logs/HEAD || fail 'a link reached the real repository'
  git commit -q --allow-empty -m mine
  same mine "$(cat "$T/outside")"
}

# What is planted after the approval is not covered by it.
later() {
  within 'git commit -q --allow-empty -m work'
  sl approve --all >/dev/null
  within 'ln -sf /etc/x .git/COMMIT_EDITMSG; echo evil >.git/ORIG_HEAD
          ln -s /etc .git/logs/x'
  exits 3 sl commit -y 2>"$T/out"
  grep -q 'changed since' "$T/out" || fail "refused for another reason: $(cat "$T/out")"
  test ! -L .git/COMMIT_EDITMSG || fail 'a link came after the approval'
  test ! -e .git/logs/x || fail 'a link came after the approval'
  test ! -e .git/ORIG_HEAD || fail 'a file came after the approval'
}

# A commit of what no file shows: named, printed, and not taken unasked.
unseen() {
  echo one >a.txt
  git add a.txt
  git commit -qm mine
  within 'echo BACKDOOR >>a.txt; git commit -qam typo
          git checkout -q HEAD~1 -- a.txt; git read-tree HEAD~1'
  is_danger .git/ git-unreviewed
  sl diff .git/ >"$T/patch" 2>"$T/note"
  grep -qx '+BACKDOOR' "$T/patch" || fail 'the patch does not show it'
  grep -q '1 file in commits' "$T/note" || fail "no note: $(cat "$T/note")"
  before=$(git rev-parse HEAD)
  not sl commit -a -y >/dev/null 2>&1
  same "$before" "$(git rev-parse HEAD)"
  # What the file shows again is a commit like any other.
  within 'git checkout -q HEAD -- a.txt'
  is_quiet 'a commit of what the files show'
  sl commit -a -y >/dev/null
  same BACKDOOR "$(tail -n 1 a.txt)"
}

parts=${*:-links later unseen}
for part in $parts; do
  echo "== $part"
  workspace "$T/$part"
  git config user.name t
  git config user.email t@example.invalid
  "$part"
done
