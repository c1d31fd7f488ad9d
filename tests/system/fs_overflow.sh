#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# More events than the kernel's queue holds come while the daemon stands still:
# what it was not told of the real tree shows all the same.
. "$(dirname "$0")/lib.sh" || exit 1
. "$TOP/tests/fs/mount.sh"
needs python3
needs_fuse

shows() { [ "$(cat "$1" 2>/dev/null)" = "$2" ]; }
overflown() { case $(fs_ask watch) in *overflows=0) return 1 ;; esac; }
gone() { [ ! -e "$1" ]; }
open_has() { [ "$(stat -L -c %s "/proc/self/fd/$1")" = "$2" ]; }
# No two alike in a row: the kernel folds those into one.
flood='
import os, sys
limit = int(open("/proc/sys/fs/inotify/max_queued_events").read())
for i in range(limit // 2 + 1000):
    os.utime(sys.argv[1]); os.utime(sys.argv[2])
'
overflow() {
  local b=$T/b m=$T/m
  mkdir -p "$b"/{one,two,old}/sub "$b/kept"
  for d in one two old; do echo before >"$b/$d/sub/f"; done
  echo before >"$b/two/gone"
  echo before >"$b/kept/open"
  fs_mount "$b" "$m" "$@"
  cat "$m"/*/sub/f "$m"/two/gone >"$T/seen"
  # Nobody asks for its name any more.
  local file
  exec {file}<"$m/kept/open"
  kill -STOP "$FS_PID"
  python3 -c "$flood" "$b/one/sub/f" "$b/two/sub/f"
  printf 'after!\n' | dd of="$b/one/sub/f" conv=notrunc status=none
  echo 'saved over it' >"$b/two/sub/f~"
  mv "$b/two/sub/f~" "$b/two/sub/f"
  rm "$b/two/gone"
  mv "$b/old" "$b/renamed"
  mkdir "$b/made"
  echo new >"$b/made/f"
  kill -CONT "$FS_PID"
  eventually overflown
  eventually shows "$m/one/sub/f" 'after!'
  eventually shows "$m/two/sub/f" 'saved over it'
  eventually gone "$m/two/gone"
  eventually open_has "$file" 7
  echo after >>"$b/kept/open"
  eventually open_has "$file" 13
  exec {file}<&-
  eventually gone "$m/old"
  eventually shows "$m/renamed/sub/f" before
  eventually shows "$m/made/f" new
  # And what comes next is told again.
  echo next >"$b/made/f"
  eventually shows "$m/made/f" next
  same 'kept made one renamed two' "$(echo $(ls "$m"))"
  fs_unmount
  rm -rf "$b" "$m" "$m.draft"
}
way=fusermount
[ "$(id -u)" -ne 0 ] || way=privileged
overflow --way $way
