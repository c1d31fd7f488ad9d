#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A checkpoint waits until what was written is on the disk, which takes its
# time (here: the draft lies in the mount of a daemon that stands still). Nobody
# who asks for anything else waits with it.
. "$(dirname "$0")/lib.sh" || exit 1
. "$TOP/tests/fs/mount.sh"
needs_fuse

try() { timeout -s KILL "${PATIENCE:-60}" "$@"; }
upkeep() {
  local b=$T/b m=$T/m i disk
  mkdir -p "$T/disk" "$T/disk.draft" "$T/at" "$b/near" "$m"
  for i in $(seq 20); do echo "near $i" >"$b/near/f$i"; done
  mkfifo "$T/words" "$T/orders"
  exec 7<>"$T/words" 8<>"$T/orders"
  touch "$T/disk-said" "$T/said"
  "$FSD" --base "$T/disk" --draft "$T/disk.draft" --mount "$T/at" \
    --way "$1" --no-background <&7 >"$T/disk-said" &
  disk=$!
  eventually grep -q ready "$T/disk-said"
  mkdir "$T/at/draft"
  "$FSD" --base "$b" --draft "$T/at/draft" --mount "$m" --way "$1" \
    --no-background <&8 >"$T/said" &
  FS_PID=$!
  eventually grep -q ready "$T/said"
  head -c 300000 /dev/zero >"$m/new"
  kill -STOP "$disk"
  echo checkpoint >&8
  sleep 1
  for i in $(seq 20); do
    same "near $i" "$(try cat "$m/near/f$i")"
  done
  same 20 "$(try ls "$m/near" | wc -l)"
  not grep -q ok "$T/said"
  kill -CONT "$disk"
  eventually grep -q ok "$T/said"
  same 300000 "$(stat -c %s "$m/new")"
  echo quit >&8
  wait "$FS_PID"
  echo quit >&7
  wait "$disk"
}
if [ "$(id -u)" -eq 0 ]; then upkeep privileged; else upkeep fusermount; fi
