#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A jail whose root cannot be finished, which is known only after its daemon has
# begun to serve: the command is told why and runs nowhere, no mark is left of
# it, its daemon leaves, and the next command has another.
. "$(dirname "$0")/lib.sh" || exit 1
needs strace
needs_fuse
[ "$(id -u)" -eq 0 ] || skip 'a traced program cannot mount as a user'
workspace

code=0
timeout 60 strace -f -qq -o /dev/null -e trace=pivot_root \
  -e inject=pivot_root:error=EPERM "$STOPLOG" run --quiet -- \
  sh -c 'echo ran >ran' 2>"$T/err" || code=$?
same 5 "$code" "exit ($(cat "$T/err"))"
grep -q "cannot enter the jail's root" "$T/err" || fail "$(cat "$T/err")"
grep -q 'doctor' "$T/err" || fail 'no hint'

no_daemon() { ! pgrep -f 'daemon --serve' >/dev/null; }
eventually no_daemon
same '' "$(sl diff --name-status)" 'held'
same 'here' "$(sl run --quiet -- sh -c 'ls ran 2>/dev/null; echo here' 2>&1)"
same 1 "$(sl log --json | grep -c '"argv"')" 'commands that are told of'
