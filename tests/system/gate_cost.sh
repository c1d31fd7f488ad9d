#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What a commit does once, and not again, however many files it has: counted,
# for no test asserts a time.
. "$(dirname "$0")/lib.sh" || exit 1
needs strace git jq
needs_fuse
strace -o /dev/null true 2>/dev/null || skip 'strace may not trace'

# The decisions are read before anything is approved, to approve, and to take
# out what was committed; written twice. 10,000 of them are seven megabytes.
workspace
sl run --quiet -- sh -c 'for i in 1 2 3 4 5; do echo $i >n$i; done'
strace -f -y -o "$T/trace" -e trace=openat,renameat "$STOPLOG" commit -a -y \
  >/dev/null 2>&1
opened() { grep -c 'openat(.*"plan\.json", O_RDONLY' "$T/trace" || true; }
written() { grep -cE 'renameat2?\(.*"plan\.json"\)? ' "$T/trace" || true; }
same 3 "$(opened)" 'how often the decisions are read'
same 2 "$(written)" 'how often they are written'

# A danger that nobody approved: nothing of the others is written down, either.
sl run --quiet -- sh -c 'echo 6 >n6; mkdir .vscode; echo {} >.vscode/tasks.json'
exits 4 "$STOPLOG" commit -a -y 2>/dev/null
same none "$(sl status --json | jq -r '.changes[] |
  select(.path == "n6") | .decision')" 'the decision on a file beside a danger'
