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

# Tables of names and beginnings are the compiler's work: each page of them that
# a program makes for itself is a fault.
needs python3
faults=$(python3 - "$STOPLOG" <<'PYTHON'
import resource, subprocess, sys
def faults():
    return resource.getrusage(resource.RUSAGE_CHILDREN).ru_minflt
def taken(*argv):
    before = faults()
    subprocess.run(argv, check=True, stdout=subprocess.DEVNULL,
                   stderr=subprocess.DEVNULL)
    return faults() - before
program = sys.argv[1]
print(min(taken(program, "status") - taken(program, "version") for _ in range(9)))
PYTHON
)
echo "a status faults on $faults pages more than a version"
[ "$faults" -gt 20 ] || fail "a status has $faults faults more than a version"
[ "$faults" -le 100 ] || fail "a status faults on $faults pages more than a version"

# Who looks again and again where nothing happens writes nothing down.
journal() { stat -c %s "$XDG_STATE_HOME"/stoplog/drafts/*/journal/0*; }
sl status >/dev/null 2>&1
once=$(journal)
for _ in 1 2 3 4 5; do sl status >/dev/null 2>&1; done
same "$once" "$(journal)" 'the journal after five more looks'
