#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A gc that waits for the object store while a commit uses it keeps what that
# commit put there.
. "$(dirname "$0")/lib.sh" || exit 1
needs git flock
needs_fuse

workspace "$T/w"
echo first >text
git add -A && git commit -qm text
sl run --quiet -- sh -c 'echo new >text'
sl commit -a -y >/dev/null 2>&1
sl undo >/dev/null 2>&1
echo second >text
sl run --quiet -- sh -c 'echo newer >text'
OLD=$(sha256sum text)

mkfifo "$T/hold"
flock -s "$XDG_STATE_HOME/stoplog/objects/lock" cat "$T/hold" &
exec 8>"$T/hold"
"$STOPLOG" gc >"$T/gc" 2>&1 8>&- &
gc=$!
eventually grep -q -- "-> FLOCK.* WRITE $gc " /proc/locks
sl commit -a -y >/dev/null 2>&1 8>&-
grep -q newer text || fail 'nothing was committed'
exec 8>&-
wait "$gc" || fail "gc: $(cat "$T/gc")"
sl undo >"$T/out" 2>&1 || fail "undo after gc: $(cat "$T/out")"
same "$OLD" "$(sha256sum text)" 'after the undo'
