#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The program starts as fast as it can: nothing is loaded (its addresses are
# random nevertheless), and nothing asks the processor what it is (0.007 ms each
# time in a virtual machine) before somebody needs to know.
. "$(dirname "$0")/lib.sh" || exit 1
needs readelf objdump nm strace

readelf -d "$STOPLOG" >"$T/dynamic"
if grep -qE 'NEEDED.*lib[a-z]+san' "$T/dynamic"; then
  skip 'a build with sanitizers'
fi
not grep NEEDED "$T/dynamic"
readelf -h "$STOPLOG" >"$T/header"
grep -qE 'Type: +DYN' "$T/header"
readelf -l "$STOPLOG" >"$T/segments"
not grep INTERP "$T/segments"

# What speaks to a network, loads modules or asks a name service is not in it.
nm "$STOPLOG" >"$T/names"
grep -qw git_diff_buffers "$T/names"
not grep -wE 'getaddrinfo|mbedtls_ssl_handshake|libssh2_init' "$T/names"
not grep -wE 'fuse_new|fuse_get_module' "$T/names"

# libcrypto's own look at it is ours to call (base/hash_speed.h).
objdump -d --section=.init "$STOPLOG" >"$T/init"
not grep -E 'call.*<OPENSSL_cpuid_setup>' "$T/init"

# `status` of a small draft: hello and question go out together, and no memory is
# taken for work that is not done (each page of it would be a fault).
needs_fuse
workspace
sl run --quiet -- sh -c 'echo x >>README.md'
sl status >/dev/null 2>&1
strace -o "$T/calls" -e trace=sendmsg,recvmsg,mmap "$STOPLOG" status >/dev/null 2>&1
same 'sendmsg sendmsg recvmsg recvmsg' \
  "$(sed -n 's/^\(sendmsg\|recvmsg\)(.*/\1/p' "$T/calls" | xargs)" 'the daemon'
not grep '^mmap' "$T/calls"
