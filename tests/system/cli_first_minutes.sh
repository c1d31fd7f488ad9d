#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What a new user meets: no draft, wrong words, wrong places.
. "$(dirname "$0")/lib.sh" || exit 1
needs jq

workspace
# Nothing yet: an empty result is no error.
sl status >/dev/null 2>&1
sl diff
sl log 2>/dev/null
same '[]' "$(sl status --json | jq -c .changes)"
same '[]' "$(sl diff --json | jq -c .changes)"
same '[]' "$(sl log --json | jq -c .entries)"
same '[]' "$(sl drafts --json | jq -c .drafts)"
exits 2 sl commit 2>"$T/err"
grep -q 'hint: .*stoplog run' "$T/err"
for words in status diff log undo drafts gc 'show 1' 'switch x' 'rm x' 'import x'; do
  # shellcheck disable=SC2086
  exits 2 sl -d nosuch $words 2>"$T/err"
  grep -q "cannot find draft 'nosuch'" "$T/err" || fail "$words: $(cat "$T/err")"
done

# Every error says what could not be done, then why.
for words in commit review rollback snapshot 'fork x' 'cat x' 'show 1' undo \
  'discard -y' stop 'reject x' 'approve x' 'rm x' 'switch x' "export $T/x" \
  'import /nowhere' '-d nosuch status' '-d nosuch diff' 'mount /etc' \
  'run --bind-ro /nowhere true' 'run --preset nosuch true' 'run --time 5x true' \
  'run --net example.org true' 'diff ../outside'; do
  # shellcheck disable=SC2086
  not sl $words >/dev/null 2>"$T/err"
  grep -q '^stoplog: cannot ' "$T/err" || fail "$words: $(cat "$T/err")"
done
exits 2 sl run --bind-ro /nowhere true 2>"$T/err"
grep -q "cannot bind '/nowhere': No such file" "$T/err" || fail "$(cat "$T/err")"

# Words.
exits 2 sl stauts 2>"$T/err"
grep -q "did you mean 'status'" "$T/err"
exits 2 sl status --jsn 2>"$T/err"
grep -q "did you mean '--json'" "$T/err"
exits 2 sl 2>/dev/null
exits 2 sl diff -U x 2>/dev/null
exits 2 sl diff ../outside 2>/dev/null
prints review sl --help
prints 'example:' sl run --help
prints --merge sl help commit
same "$(sl version)" "$(sl --version)"

# Places.
exits 4 sl --workspace "$HOME" run true 2>"$T/err"
grep -q 'home directory' "$T/err"
exits 4 sl --workspace / run true 2>/dev/null
not sl -C "$T/nowhere" status 2>/dev/null
mkdir -p "$T/plain"
sl -C "$T/plain" status 2>/dev/null

# Where nothing can be kept: readers find nothing, whoever must write says what
# to set. A file in a directory's place is no policy, either.
for place in /dev/null /proc/self; do
  for words in status diff log drafts; do
    XDG_STATE_HOME=$place sl $words >/dev/null 2>"$T/err" || fail "$words: $(cat "$T/err")"
  done
done
exits 6 env XDG_STATE_HOME=/dev/null "$STOPLOG" undo 2>"$T/err"
grep -q "cannot make directory '/dev/null/stoplog'" "$T/err" || fail "$(cat "$T/err")"
grep -q '^hint: .*set XDG_STATE_HOME' "$T/err" || fail "$(cat "$T/err")"
exits 125 env XDG_STATE_HOME=/dev/null "$STOPLOG" run true 2>"$T/err"
grep -q '^hint: .*set XDG_STATE_HOME' "$T/err" || fail "$(cat "$T/err")"
XDG_CONFIG_HOME=/dev/null sl policy show >/dev/null

# A read-only state directory is named, where the reason alone could be said of
# the workspace; readers of what is on record go on.
if [ "$(id -u)" -eq 0 ] && [ -n "${STOPLOG_TEST_INSIDE:-}" ]; then
  mkdir "$T/kept"
  XDG_STATE_HOME=$T/kept sl run --quiet touch held
  XDG_STATE_HOME=$T/kept sl cat @1.:held
  exits 2 env XDG_STATE_HOME="$T/kept" "$STOPLOG" cat @9:held 2>"$T/err"
  grep -q "there is no mark '@9'" "$T/err" || fail "$(cat "$T/err")"
  XDG_STATE_HOME=$T/kept sl rollback
  for pid in $(stoplog_pids); do kill "$pid"; done
  nobody() { [ -z "$(stoplog_pids)" ]; }
  eventually nobody
  mount --bind "$T/kept" "$T/kept"
  mount -o remount,bind,ro "$T/kept"
  for words in 'commit -a -y' 'discard -y' rollback gc; do
    exits 6 env XDG_STATE_HOME="$T/kept" "$STOPLOG" $words 2>"$T/err"
    grep -q "^hint: .*'$T/kept/stoplog', which cannot be written" "$T/err" ||
      fail "$words: $(cat "$T/err")"
  done
  XDG_STATE_HOME=$T/kept sl log >/dev/null
  XDG_STATE_HOME=$T/kept sl drafts >/dev/null
  umount "$T/kept"
fi

# Policy.
prints '^command /bin/sh: runs in the jail' sl policy check /bin/sh
prints '^path /etc/shadow: outside of the workspace' sl policy check /etc/shadow
sl policy init >/dev/null
exits 4 sl policy init 2>/dev/null
sl policy show >/dev/null
printf '[limits]\ntime = 5\n' >"$XDG_CONFIG_HOME/stoplog/config.toml"
exits 2 sl policy show 2>"$T/err"
grep -q 'config.toml:2:8: limits.time must be a duration' "$T/err"
printf '[limits]\npids = 100\n' >"$XDG_CONFIG_HOME/stoplog/config.toml"
printf '[limits]\npids = 200\ntime = "5m"\n[files]\nhide = ["secret*"]\n' >.stoplog.toml
sl policy show --json 2>"$T/err" >"$T/policy"
same 100 "$(jq .policy.limits.pids "$T/policy")"
same 300000 "$(jq .policy.limits.time_ms "$T/policy")"
grep -q 'may only tighten' "$T/err"
prints hidden sl policy check secret.txt 2>/dev/null
prints denied sl policy check example.org 2>/dev/null

# Colours.
sl --color always policy show >/dev/null 2>&1
escapes() { # exits 0 when the error of a wrong command is coloured
  local text
  text=$("$@" 2>&1) || true
  [[ $text == *$'\033'* ]]
}
not escapes sl nosuch
CLICOLOR_FORCE=1 escapes sl nosuch
NO_COLOR=1 not escapes sl nosuch
escapes sl --color always nosuch
