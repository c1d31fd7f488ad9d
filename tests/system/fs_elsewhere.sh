#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Files of another machine (sshfs) beneath the workspace, whose server does not
# answer. sshfs wants to be told of every close, so even to close a file that
# was only read hangs: its descriptor, which others push out of those that are
# kept, is nobody's to wait for. Nor is the first write to such a file.
. "$(dirname "$0")/lib.sh" || exit 1
. "$TOP/tests/fs/mount.sh"
needs sshfs
needs_fuse
server=$(command -v /usr/lib/openssh/sftp-server /usr/libexec/sftp-server |
  head -n 1) || skip 'needs an sftp-server'

try() { timeout -s KILL "${PATIENCE:-60}" "$@"; }
elsewhere() {
  local b=$T/b m=$T/m i far writer
  mkdir -p "$T/there" "$b/slow" "$b/near"
  for i in $(seq 4); do echo "far $i" >"$T/there/f$i"; done
  for i in $(seq 400); do echo "near $i" >"$b/near/f$i"; done
  mkfifo "$T/answers"
  "$server" <"$T/answers" | sshfs -f -o passive,default_permissions \
    "localhost:$T/there" "$b/slow" >"$T/answers" &
  far=$!
  eventually mountpoint -q "$b/slow"
  fs_mount "$b" "$m" --way "$1" --no-background
  same 'far 1' "$(cat "$m/slow/f1")"
  same 'far 2' "$(cat "$m/slow/f2")"
  stat "$m/slow/f3" >/dev/null
  kill -STOP "$far"
  sh -c "echo more >>'$m/slow/f3'" &
  writer=$!
  sleep 0.5
  # More than there are descriptors kept.
  for i in $(seq 400); do
    try cat "$m/near/f$i" >/dev/null || fail "no look at f$i"
  done
  for i in $(seq 40); do
    try sh -c "echo more >>'$m/near/f$i'" || fail "no first write to f$i"
  done
  kill -0 "$writer" || fail 'the other machine answers: nothing was tried'
  kill -CONT "$far"
  wait "$writer"
  same 'far 3 more' "$(xargs <"$m/slow/f3")"
  same 'far 1' "$(cat "$m/slow/f1")"
  fs_unmount
  umount -l "$b/slow" 2>/dev/null || fusermount3 -uz "$b/slow"
  wait "$far" || true
}
if [ "$(id -u)" -eq 0 ]; then elsewhere privileged; else elsewhere fusermount; fi
