#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A workspace on xfs, on btrfs and on tmpfs is like one on ext4: the same
# semantics, and edits of it show.
# ctest: timeout 600
. "$(dirname "$0")/lib.sh" || exit 1
. "$TOP/tests/fs/mount.sh"
needs python3 git tar mkfs.xfs mkfs.btrfs
needs_fuse
[ "$(id -u)" -eq 0 ] || skip 'needs root: mounts file systems'

disk() { # KIND
  mkdir -p "$T/$1"
  if [ "$1" = tmpfs ]; then
    mount -t tmpfs -o mode=755 none "$T/tmpfs"
    return
  fi
  truncate -s 400M "$T/image-$1"
  "mkfs.$1" -q "$T/image-$1"
  mount -o loop "$T/image-$1" "$T/$1"
}
suite() { python3 "$TOP/tests/fs/semantics.py" "$@"; }
semantics() { # DIRECTORY
  mkdir "$1/base"
  suite prepare "$1/base"
  local before
  before=$(fingerprint "$1/base")
  fs_mount "$1/base" "$1/m" --way privileged
  suite run "$1/m"
  fs_unmount
  same "$before" "$(fingerprint "$1/base")" 'the real tree changed'
}
for kind in xfs btrfs tmpfs; do
  echo "--- $kind"
  disk $kind
  semantics "$T/$kind"
  mkdir "$T/$kind/coherence"
  python3 "$TOP/tests/fs/coherence.py" "$FSD" "$T/$kind/coherence" privileged \
    "${SEED:-77}" 2
  umount "$T/$kind"
done
