#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Edits of the real tree show in the mount, whatever the kernel has cached. The
# seed is fixed; SEED=1 takes another, scripts/fs-fuzz is the long form.
. "$(dirname "$0")/lib.sh" || exit 1
. "$TOP/tests/fs/mount.sh"
needs python3
needs_fuse

coherent() {
  mkdir "$T/coherence"
  python3 "$TOP/tests/fs/coherence.py" "$FSD" "$T/coherence" "$1" \
    "${SEED:-104415833}"
}
if [ "$(id -u)" -eq 0 ]; then coherent privileged; fi
ordinary() { coherent fusermount; }
run_as_user ordinary
