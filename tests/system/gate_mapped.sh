#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A program has a file of the real tree mapped to write to, with no descriptor
# of it left: what it writes after a commit was tried is not lost.
. "$(dirname "$0")/lib.sh" || exit 1
needs git python3
needs_fuse

mapped() {
  head -c 4096 /dev/zero | tr '\0' a >m
  echo old >n
  git add -A && git commit -qm more
  sl run --quiet -- sh -c 'echo new >m; echo new >n'
  sl approve m n >/dev/null
  mkfifo "$HOME/go"
  python3 -c '
import mmap, os, sys
fd = os.open("m", os.O_RDWR)
page = mmap.mmap(fd, 4096)
os.close(fd)
open(sys.argv[1] + "/ready", "w").close()
open(sys.argv[1] + "/go").read()
page[0:5] = b"saved"' "$HOME" &
  local writer=$!
  eventually test -e "$HOME/ready"
  exits 3 sl commit 2>/dev/null
  same old "$(cat n)" 'a file beside one that is mapped'
  echo >"$HOME/go"
  wait "$writer"
  same saved "$(head -c 5 m)" 'what was written through the mapping'
}
both_modes mapped
