#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What a local POSIX file system does, a mounted tree does: as root, as an
# ordinary user through fusermount3, and in a user namespace. The same suite
# runs on a plain directory first, which shows that it asks for no more.
# ctest: timeout 600
. "$(dirname "$0")/lib.sh" || exit 1
. "$TOP/tests/fs/mount.sh"
needs python3 git tar
needs_fuse

suite() {
  python3 "$TOP/tests/fs/semantics.py" "$@"
}

plain() {
  mkdir "$T/plain"
  suite prepare "$T/plain"
  suite run "$T/plain"
}

mounted() {
  mkdir "$T/base-$1"
  suite prepare "$T/base-$1"
  local before
  before=$(fingerprint "$T/base-$1")
  fs_mount "$T/base-$1" "$T/m-$1" --way "$1"
  fs_in suite run "$T/m-$1"
  fs_unmount
  same "$before" "$(fingerprint "$T/base-$1")" 'the real tree changed'
}

as_root() {
  plain
  mounted privileged
}
as_ordinary() {
  plain
  mounted fusermount
  mounted userns
}
if [ "$(id -u)" -eq 0 ]; then as_root; fi
run_as_user as_ordinary
