#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What the kernel asks, counted: the fast path is the one where it asks nothing.
# Counts repeat exactly, so they are asserted.
. "$(dirname "$0")/lib.sh" || exit 1
. "$TOP/tests/fs/mount.sh"
needs python3
needs_fuse

costs() {
  mkdir "$T/base" "$T/m"
  python3 "$TOP/tests/fs/cost.py" prepare "$T/base"
  python3 "$TOP/tests/fs/cost.py" run "$FSD" "$T" "$1"
}
if [ "$(id -u)" -eq 0 ]; then
  (costs privileged)
  rm -rf "$T/base" "$T/m" "$T/draft"
fi
ordinary() { costs fusermount; }
run_as_user ordinary
