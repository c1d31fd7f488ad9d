#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Thousands of small cases give in the mount what they give on ext4: errno,
# attributes, owners, and which times move; for root and for users of several
# groups.
# ctest: timeout 900
. "$(dirname "$0")/lib.sh" || exit 1
. "$TOP/tests/fs/mount.sh"
needs python3 mkfs.ext4
needs_fuse

posix() { python3 "$TOP/tests/fs/posix.py" "$@"; }
# Some directories are closed to the user himself.
whole() { fingerprint "$1" 2>/dev/null || true; }
compared() { # WAY
  mkdir "$T/base-$1" "$T/plain-$1"
  posix prepare "$T/base-$1"
  local before
  before=$(whole "$T/base-$1")
  fs_mount "$T/base-$1" "$T/m-$1" --way "$1"
  fs_in posix run "$T/plain-$1" "$T/m-$1" "${ONLY:-}"
  fs_unmount
  same "$before" "$(whole "$T/base-$1")" 'the real tree changed'
}
as_a_user() { compared fusermount; }
[ "$(id -u)" -eq 0 ] || skip 'needs root: becomes several users'
# What is compared with is ext4, whatever /tmp is.
if [ "$(stat -f -c %T "$T")" != ext2/ext3 ]; then
  truncate -s 2G "$T/image"
  mkfs.ext4 -q -N 500000 "$T/image"
  mkdir "$T/ext4"
  mount -o loop "$T/image" "$T/ext4"
  T=$T/ext4
fi
[ "${1:-}" = user ] || compared privileged
run_as_user as_a_user
