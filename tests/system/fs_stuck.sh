#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A lower that hangs (here: the mount of a daemon that stands still, as of a
# server that is away) hangs its own files and nobody else's, however many wait
# for it.
. "$(dirname "$0")/lib.sh" || exit 1
. "$TOP/tests/fs/mount.sh"
needs_fuse

# Who waits; over io_uring (asked for by fs_rings.sh) there are fewer threads
# (fs/mount_ring.h), and names of one directory wait for each other.
WAITERS=115 beside=yes way=device
if [ "$FSD_RINGS" = yes ]; then WAITERS=15 beside=no way=rings; fi
try() { timeout -s KILL "${PATIENCE:-60}" "$@"; }
stuck() {
  local b=$T/b m=$T/m
  mkdir -p "$T/far/sub" "$b/slow" "$b/near"
  for i in $(seq "$WAITERS"); do echo "far $i" >"$T/far/sub/f$i"; done
  for i in $(seq 50); do echo "near $i" >"$b/near/f$i"; done
  mkdir "$T/slow.draft"
  mkfifo "$T/words"
  exec 7<>"$T/words"
  "$FSD" --base "$T/far" --draft "$T/slow.draft" --mount "$b/slow" \
    --way "$1" <&7 >"$T/far-said" &
  local far=$!
  eventually grep -q ready "$T/far-said"
  fs_mount "$b" "$m" --way "$1"
  # The draft's own in a directory that will hang; nobody knows its name then.
  echo own >"$m/slow/sub/own"
  fs_unmount
  fs_mount "$b" "$m" --way "$1"
  same 'far 1' "$(cat "$m/slow/sub/f1")"
  same "$way" "$(fs_ask way)"
  same 'near 1' "$(cat "$m/near/f1")"
  kill -STOP "$far"
  local waiting=()
  for i in $(seq 2 "$WAITERS"); do
    cat "$m/slow/sub/f$i" >"$T/got$i" 2>/dev/null &
    waiting+=($!)
  done
  ls "$m/slow/sub" >/dev/null 2>&1 & waiting+=($!)
  sleep 0.5
  # Reads, listings, new files, edits on both sides, marks, all elsewhere.
  for i in $(seq 2 50); do same "near $i" "$(try cat "$m/near/f$i")"; done
  same 50 "$(try ls "$m/near" | wc -l)"
  [ "$beside" = no ] || same own "$(try cat "$m/slow/sub/own")"
  for i in $(seq 10); do try cp "$m/near/f$i" "$m/near/g$i"; done
  try mv "$m/near/g1" "$m/g1"
  try sh -c "echo more >>'$m/near/f1'"
  echo edited >"$b/near/f50"
  eventually sh -c "[ \"\$(cat '$m/near/f50')\" = edited ]"
  case $(fs_ask mark x) in *[!0-9]* | '') fail 'no mark' ;; esac
  kill -CONT "$far"
  wait "${waiting[@]}"
  for i in $(seq 2 "$WAITERS"); do same "far $i" "$(cat "$T/got$i")"; done
  fs_unmount
  echo quit >&7
  wait "$far"
}
if [ "$(id -u)" -eq 0 ]; then stuck privileged; else stuck fusermount; fi
