#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Random operations on the mount and on a plain directory give the same, through
# remounts, kill -9, marks and rollbacks. scripts/fs-fuzz is the long form.
. "$(dirname "$0")/lib.sh" || exit 1
. "$TOP/tests/fs/mount.sh"
# ctest: timeout 400
needs python3
needs_fuse

fuzz() {
  mkdir "$T/fuzz"
  python3 "$TOP/tests/fs/fuzz.py" "$FSD" "$T/fuzz" "$@"
}
if [ "$(id -u)" -eq 0 ]; then fuzz privileged; fi
ordinary() { fuzz fusermount; }
run_as_user ordinary
