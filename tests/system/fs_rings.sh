#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Requests over io_uring, where root has allowed that: everything is as over the
# device, as root and as a user, and a killed daemon leaves nothing hanging.
# Where a dead connection could not be aborted they do not go that way.
# ctest: serial
# ctest: timeout 600
. "$(dirname "$0")/../fs/rings.sh" || exit 1
. "$(dirname "$0")/lib.sh" || exit 1
export FSD_RINGS=yes
. "$TOP/tests/fs/mount.sh"
needs python3 strace
needs_fuse
[ "$(id -u)" -eq 0 ] || skip 'only root turns io_uring for FUSE on'
switch=$RINGS_SWITCH
[ -e "$switch" ] || skip 'this kernel has no FUSE over io_uring'

# Whoever looks next finds it so at once; a test that is killed has its keeper.
trap 'status=$?; set +e; echo "$RINGS_BEFORE" >"$switch"; (exit "$status")
clean_up' EXIT
way() {
  mkdir -p "$T/b"
  fs_mount "$T/b" "$T/m" "$@"
  ls "$T/m" # what is asked waits until the kernel knows the way
  local got
  got=$(fs_ask way)
  fs_unmount
  rm -rf "$T/b" "$T/m" "$T/m.draft"
  echo "$got"
}
through_fusermount() { same "$WANT" "$(way --way fusermount)"; }

echo N >"$switch"
same device "$(way)"
echo Y >"$switch"
same rings "$(way)"
same device "$(way --no-rings)"
# Where a ring cannot be made the device serves; one that fails later ends the
# mount, for whoever asks would wait for ever.
broken() {
  printf '#!/bin/sh\nexec strace -f -qqq -o "%s" -e trace=io_uring_setup,io_uring_enter,writev -e inject=%s "%s" "$@"\n' \
    "$T/trace" "$1" "$BUILD/tests/fsd" >"$T/fsd"
  chmod +x "$T/fsd"
  FSD=$T/fsd
}
broken io_uring_setup:error=EPERM
same device "$(way)"
broken io_uring_enter:error=ENOMEM
mkdir "$T/b"
fs_mount "$T/b" "$T/m" 2>"$T/said"
not timeout -s KILL 60 ls "$T/m" 2>/dev/null
grep -q 'io_uring: cannot submit' "$T/said" || fail "$(cat "$T/said")"
fs_unmount
rm -rf "$T/b" "$T/m" "$T/m.draft"
# Switched off after the kernel offered it and before we took it.
broken writev:delay_enter=2000000:when=1
mkdir "$T/b"
fs_mount "$T/b" "$T/m" 2>"$T/said"
echo N >"$switch"
ls "$T/m"
same device "$(fs_ask way)"
grep -q 'the kernel takes no ring' "$T/said" || fail "$(cat "$T/said")"
fs_unmount
echo Y >"$switch"
rm -rf "$T/b" "$T/m" "$T/m.draft"
FSD=$BUILD/tests/fsd
# A user's mount is aborted through fusectl alone.
umount /sys/fs/fuse/connections 2>/dev/null || true
WANT=device run_as_user through_fusermount
mount -t fusectl none /sys/fs/fuse/connections
WANT=rings run_as_user through_fusermount

for suite in semantics stuck crash cost; do
  env -u STOPLOG_TEST_INSIDE bash "$TOP/tests/system/fs_$suite.sh"
done
SEEDS=7 env -u STOPLOG_TEST_INSIDE bash "$TOP/tests/system/fs_fuzz.sh"
