#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# stress-ng's file-system stressors, a little of each, in a mount. A stressor
# that fails on the mount must fail on the plain directory too.
. "$(dirname "$0")/lib.sh" || exit 1
. "$TOP/tests/fs/mount.sh"
# ctest: timeout 400
needs stress-ng
needs_fuse

stressors='access chdir chmod copy-file dentry dir dirdeep fallocate fcntl
  filename flock fpunch fstat getdent hdd link lockf mknod mmap open
  punch readahead rename revio seek sendfile symlink sync-file touch unlink
  utime xattr'
stress() { # NAME DIRECTORY
  stress-ng --quiet --temp-path "$2" --"$1" 1 --"$1"-ops 40 --timeout 5 \
    --verify --no-rand-seed >"$T/stress-$1" 2>&1
}
mkdir "$T/base" "$T/plain"
way=fusermount
[ "$(id -u)" -ne 0 ] || way=privileged
fs_mount "$T/base" "$T/m" --way $way
bad=
for name in $stressors; do
  stress-ng --"$name" 1 --dry-run >/dev/null 2>&1 || continue
  stress "$name" "$T/m" && continue
  cp "$T/stress-$name" "$T/first"
  if stress "$name" "$T/plain"; then
    bad="$bad $name"
    cat "$T/first"
  else
    echo "$name fails on a plain directory too"
  fi
done
[ -z "$bad" ] || fail "stressors failed on the mount alone:$bad"
test -n "$(fs_ask stats)"
fs_unmount
