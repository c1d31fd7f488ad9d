#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Where the real tree cannot be watched (beyond the limit, or another file
# system) edits of it still show, a second later.
. "$(dirname "$0")/lib.sh" || exit 1
. "$TOP/tests/fs/mount.sh"
needs_fuse

shows() { [ "$(cat "$1" 2>/dev/null)" = "$2" ]; }
unwatched() {
  local b=$T/b m=$T/m
  mkdir -p "$b"/{one,two,three}/sub
  for d in one two three; do echo before >"$b/$d/sub/f"; done
  fs_mount "$b" "$m" "$@"
  cat "$m"/*/sub/f >"$T/seen"
  not test -e "$m/two/sub/new"
  for d in one two three; do
    # The same size: only its times tell.
    printf 'after!\n' | dd of="$b/$d/sub/f" conv=notrunc status=none
    echo new >"$b/$d/sub/new"
  done
  for d in one two three; do
    eventually shows "$m/$d/sub/f" 'after!'
    eventually shows "$m/$d/sub/new" new
  done
  eventually test "$(ls "$m/three/sub" | wc -l)" -eq 2
  fs_unmount
  rm -rf "$b" "$m" "$m.draft"
}
way=fusermount
[ "$(id -u)" -ne 0 ] || way=privileged
unwatched --way $way --most-watches 2
unwatched --way $way --no-watch

# A user who has all of the inotify instances that he may have.
cat >"$T/none" <<EOF
#!/bin/sh
exec unshare --user --map-root-user --mount sh -c '
  echo 0 >/proc/sys/user/max_inotify_instances && exec "$FSD" "\$@"' sh "\$@"
EOF
chmod +x "$T/none"
none_left() {
  local b=$T/b m=$T/m
  mkdir -p "$b"
  echo before >"$b/f"
  FSD="$T/none" fs_mount "$b" "$m" --way privileged 2>"$T/said"
  fs_in shows "$m/f" before
  echo after >"$b/f"
  eventually fs_in shows "$m/f" after
  fs_unmount
  grep -q 'not watched' "$T/said"
}
none_left
