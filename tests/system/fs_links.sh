#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The walk for the other names of a file, one of which may be masked, takes as
# long as it takes (here: for ever, each listing by the daemon is held up). Who
# reads another file, even one of several names, lists, writes or ends the mount
# does not wait for it, and whoever was killed while he waits ends.
. "$(dirname "$0")/lib.sh" || exit 1
. "$TOP/tests/fs/mount.sh"
needs strace
needs_fuse
[ "$(id -u)" -eq 0 ] || skip 'who is traced cannot call fusermount3'

try() { timeout -s KILL "${PATIENCE:-60}" "$@"; }
linked() {
  local b=$T/b m=$T/m i waiting=()
  mkdir -p "$b/near" "$b/linked"
  for i in $(seq 200); do
    mkdir "$b/d$i"
    echo "near $i" >"$b/near/f$i"
    echo "linked $i" >"$b/linked/f$i"
    ln "$b/linked/f$i" "$b/d$i/g"
  done
  echo secret >"$b/d7/.env"
  ln "$b/d7/.env" "$b/linked/masked"
  # Names are known before: only the walk lists from then on.
  printf '#!/bin/sh\nexec strace -f -qqq -o /dev/null -e trace=getdents64 -e inject=getdents64:delay_enter=2000000:when=4+ "%s" "$@"\n' \
    "$FSD" >"$T/fsd"
  chmod +x "$T/fsd"
  FSD=$T/fsd fs_mount "$b" "$m" --default-masks --no-background "$@"
  for i in $(seq 12); do
    cat "$m/linked/f$i" >"$T/got$i" 2>&1 &
    waiting+=($!)
  done
  sh -c "echo more >>'$m/linked/f13'" 2>/dev/null &
  local writer=$!
  sleep 1
  for i in $(seq 40); do
    same "near $i" "$(try cat "$m/near/f$i")"
    try sh -c "echo more >>'$m/near/f$i'" || fail "no write to f$i"
    try stat -c %s "$m/linked/f$i" >/dev/null || fail "no look at f$i"
  done
  kill -0 "$writer" || fail 'the walk is over: nothing was tried'
  kill -KILL "$writer"
  try tail --pid="$writer" -f /dev/null || fail 'who was killed still waits'
  for i in "${waiting[@]}"; do
    kill -0 "$i" || fail 'the walk is over: nothing was tried'
  done
  # Nobody is told a wrong thing either: EIO, as of any file when a mount ends.
  echo quit >&"$FS_IN"
  try tail --pid="$FS_PID" -f /dev/null || fail 'the mount waits for the walk'
  wait "$FS_PID" || fail "fsd ended with $?"
  for i in "${waiting[@]}"; do not wait "$i"; done
  grep -l 'linked [0-9]' "$T"/got* && fail 'it was read unasked'
  # And without what holds it up.
  fs_mount "$b" "$m" --default-masks "$@"
  same 'linked 13' "$(cat "$m/linked/f13")"
  not grep -q secret "$m/linked/masked"
  fs_unmount
  rm -rf "$b" "$m" "$m.draft"
}
linked --way privileged
