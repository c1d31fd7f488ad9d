#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A kernel that is too old: a clear sentence, exit 5, nothing ran; doctor agrees.
# The kernel itself plays the old one: setarch makes it call itself 2.6.
. "$(dirname "$0")/lib.sh" || exit 1
needs setarch

workspace
old() { setarch --uname-2.6 "$STOPLOG" "$@"; }
old version >/dev/null
exits 5 old run -- touch ran 2>"$T/err"
grep -q 'stoplog: cannot work on Linux 2\.6' "$T/err" ||
  fail "no reason: $(cat "$T/err")"
grep -q '^hint: boot Linux 5\.19 or newer' "$T/err" ||
  fail "no hint: $(cat "$T/err")"
not test -e ran
same '' "$(find "$XDG_STATE_HOME" -mindepth 1)" 'left in the state directory'
exits 5 old doctor >"$T/doctor"
grep -q '^fail kernel  *Linux 2\.6: too old' "$T/doctor" ||
  fail "doctor says: $(cat "$T/doctor")"
