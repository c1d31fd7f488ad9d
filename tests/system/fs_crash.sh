#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The daemon killed with -9 while writers, readers and invalidations are at work.
. "$(dirname "$0")/lib.sh" || exit 1
. "$TOP/tests/fs/mount.sh"
# ctest: timeout 400
needs python3
needs_fuse

crashed() {
  mkdir "$T/crash"
  python3 "$TOP/tests/fs/crash.py" "$FSD" "$T/crash" "$1"
}
if [ "$(id -u)" -eq 0 ]; then crashed privileged; fi
ordinary() { crashed fusermount; }
run_as_user ordinary
