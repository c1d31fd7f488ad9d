#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The program starts as fast as it can: nothing is loaded but the C library,
# and nothing asks the processor what it is (0.007 ms each time in a virtual
# machine) before somebody needs to know.
. "$(dirname "$0")/lib.sh" || exit 1
needs readelf objdump

readelf -d "$STOPLOG" >"$T/dynamic"
grep -q 'NEEDED.*libc\.so' "$T/dynamic" || skip 'not linked as usual'
grep 'NEEDED' "$T/dynamic" >"$T/needed"
if grep -qE 'lib[a-z]+san' "$T/needed"; then skip 'a build with sanitizers'; fi
not grep -vE 'libc\.so|ld-linux' "$T/needed"

# libcrypto's own look at it is ours to call (base/hash_speed.h).
objdump -d --section=.init "$STOPLOG" >"$T/init"
not grep -E 'call.*<OPENSSL_cpuid_setup>' "$T/init"
