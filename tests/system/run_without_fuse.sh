#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A machine without FUSE: a clear sentence, exit 5, nothing ran; doctor agrees.
. "$(dirname "$0")/lib.sh" || exit 1
[ "$(id -u)" -eq 0 ] || skip 'only root can take /dev/fuse away'

# In the mount namespace of this test alone.
mount --bind /dev/null /dev/fuse
workspace
exits 5 sl run -- touch ran 2> "$T/err"
grep -q 'cannot mount' "$T/err" || fail "no reason: $(cat "$T/err")"
grep -q 'hint: .*doctor' "$T/err" || fail "no hint: $(cat "$T/err")"
not test -e ran
exits 5 sl run --quiet -- true 2> /dev/null
