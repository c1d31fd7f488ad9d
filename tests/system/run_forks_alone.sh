#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The daemon makes the mounts' guards and the zygote before any thread: a fork
# of a process with threads has their locks, held for ever.
. "$(dirname "$0")/lib.sh" || exit 1
needs_fuse
needs strace

enter_home "$T/h"
workspace
strace -f -e trace=clone,clone3,execve -o "$T/trace" \
  "$STOPLOG" run --quiet -- /bin/true &
tracer=$!
eventually grep -q 'CLONE_NEWPID.*CLONE_NEWNET' "$T/trace"
eventually grep -q 'CLONE_THREAD' "$T/trace"
kill -9 "$tracer"

daemon=$(awk '/execve.*"daemon", "--serve"/ {print $1; exit}' "$T/trace")
grep "^$daemon .*clone" "$T/trace" >"$T/clones"
# In order: guards, the zygote, threads.
thread=$(grep -n CLONE_THREAD "$T/clones" | head -n 1 | cut -d: -f1)
zygote=$(grep -n 'CLONE_NEWNET' "$T/clones" | head -n 1 | cut -d: -f1)
[ "$zygote" -gt 1 ]
[ "$thread" -gt "$zygote" ] || fail "$(cut -c1-150 "$T/clones")"
