#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Random operations on the mount and on a plain directory give the same, through
# remounts, kill -9, marks and rollbacks. The seeds are fixed, so that what fails
# here is a change; SEEDS="1 2" takes others, scripts/fs-fuzz is the long form.
. "$(dirname "$0")/lib.sh" || exit 1
. "$TOP/tests/fs/mount.sh"
# ctest: timeout 400
needs python3
needs_fuse

fuzz() {
  local seed
  # The first once wrote a record that no replay could apply.
  for seed in ${SEEDS:-990671599 3 2026}; do
    mkdir "$T/fuzz"
    python3 "$TOP/tests/fs/fuzz.py" "$FSD" "$T/fuzz" "$1" "$seed" 1500
    rm -rf "$T/fuzz"
  done
}
if [ "$(id -u)" -eq 0 ]; then fuzz privileged; fi
ordinary() { fuzz fusermount; }
run_as_user ordinary
