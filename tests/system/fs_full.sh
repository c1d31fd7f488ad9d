#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A draft whose state lies on a full disk: programs get ENOSPC, what they wrote
# before is there, names can be removed, and freed space makes it go on.
# ctest: timeout 400
. "$(dirname "$0")/lib.sh" || exit 1
. "$TOP/tests/fs/mount.sh"
needs mkfs.ext4 mkfs.btrfs python3
needs_fuse
[ "$(id -u)" -eq 0 ] || skip 'needs root: mounts a small disk'

no_room() { # CMD...: fails, and says why
  if "$@" 2>"$T/said"; then fail "there was room: $*"; fi
  grep -q 'No space left on device' "$T/said" || fail "$*: $(cat "$T/said")"
}
fill() {
  dd if=/dev/zero of="$1" bs="$2" oflag=append conv=notrunc status=none
}
kept() {
  same "$sum" "$(sha256sum <"$m/kept")"
  same before "$(cat "$m/old")"
}
names() {
  python3 -c 'import os, sys
for n in range(100000): os.mkdir(sys.argv[1] + str(n))' "$1"
}
put() { cat "$1" >"$2"; }
line() { echo "$1" >"$2"; }

full() {
  local m=$T/m small=$T/m.draft way=$1 sum
  mkdir "$T/base"
  echo before >"$T/base/old"
  mkdir "$T/base/dir"
  head -c 3000000 /dev/urandom >"$T/base/large"
  fs_mount "$T/base" "$m" --way "$way"
  head -c 1000000 /dev/urandom >"$m/kept"
  sum=$(sha256sum <"$m/kept")
  mkdir "$m/made"
  touch "$m/made/"{a,b,c}

  # Filled from inside: what is taken away again can be used again.
  no_room fill "$m/filling" 64k
  kept
  test -s "$m/filling"
  rm "$m/filling"
  head -c 2000000 /dev/zero >"$m/again"
  rm "$m/again"

  # Filled from outside to the last block, then with names until not even a
  # record fits.
  no_room fill "$small/ballast" 64k
  no_room fill "$small/ballast" 1k
  mkdir "$m/many"
  no_room names "$m/many/d"
  no_room put "$T/base/large" "$m/new"
  no_room put "$T/base/large" "$m/made/a"
  not test -s "$m/made/b"
  kept
  same "$(sha256sum <"$T/base/large")" "$(sha256sum <"$m/large")"
  # As on any file system: full or not, names can be removed.
  rm -r "$m/made"
  rm "$m/old"
  not test -e "$m/made"
  rmdir "$m"/many/d1*0

  # Killed when full, and started again when full.
  fs_kill
  fs_mount "$T/base" "$m" --way "$way"
  same "$sum" "$(sha256sum <"$m/kept")"
  not test -e "$m/made"
  not test -e "$m/old"
  not test -e "$m/many/d10"
  no_room put "$T/base/large" "$m/new"

  rm "$small/ballast"
  cp "$T/base/large" "$m/new"
  cmp "$T/base/large" "$m/new"
  mkdir "$m/made"
  line x "$m/made/a"
  fs_unmount
  fs_mount "$T/base" "$m" --way "$way"
  cmp "$T/base/large" "$m/new"
  same x "$(cat "$m/made/a")"
  same "$sum" "$(sha256sum <"$m/kept")"
  fs_unmount
  rm -r "$T/base"
}

# Small disks for the user too, who may not mount any.
disk() { # DIRECTORY MKFS-OR-TMPFS
  mkdir -p "$1"
  if [ "$2" = tmpfs ]; then
    mount -t tmpfs -o size=12m,mode=755 none "$1"
  else
    truncate -s 24M "$T/image"
    mkfs.ext4 -q -m 0 -J size=4 "$T/image"
    mount -o loop "$T/image" "$1"
    rmdir "$1/lost+found"
  fi
}
for kind in ext4 tmpfs; do
  echo "--- $kind"
  disk "$T/m.draft" $kind
  full privileged
  umount "$T/m.draft"
done
prepare_user
disk "$T/user/m.draft" ext4
chown "$TEST_UID:$TEST_UID" "$T/user/m.draft"
ordinary() { full fusermount; }
run_as_user ordinary
umount "$T/user/m.draft"

# A quota of the disk in place of a full one: EDQUOT. ext4's are not in every
# kernel, those of btrfs are where btrfs is.
quota() {
  local m=$T/m
  mkdir "$T/base"
  fs_mount "$T/base" "$m" --way privileged
  echo kept >"$m/kept"
  if fill "$m/filling" 64k 2>"$T/said"; then fail 'the quota does not hold'; fi
  grep -q 'Disk quota exceeded' "$T/said" || fail "$(cat "$T/said")"
  same kept "$(cat "$m/kept")"
  # btrfs may refuse even a removal then.
  btrfs qgroup limit none "$T/m.draft"
  rm "$m/filling"
  head -c 2000000 /dev/zero >"$m/again"
  fs_unmount
}
truncate -s 300M "$T/image"
mkfs.btrfs -q -f "$T/image"
mount -o loop "$T/image" "$T/m.draft"
btrfs quota enable "$T/m.draft"
btrfs qgroup limit 20M "$T/m.draft"
quota
umount "$T/m.draft"
