# SPDX-License-Identifier: Apache-2.0
# keyring.py run CMD... : runs CMD with a session keyring that holds a key.
# keyring.py find : prints that key, if it is in the keyring we were born with.
import ctypes
import os
import sys

libc = ctypes.CDLL(None, use_errno=True)
ADD_KEY, KEYCTL = 248, 250
JOIN, SEARCH, READ, SESSION = 1, 10, 11, -3

if sys.argv[1] == "run":
    libc.syscall(KEYCTL, JOIN, ctypes.c_long(0))
    key = libc.syscall(ADD_KEY, b"user", b"stoplog-test", b"SUCCESS", 7,
                       ctypes.c_long(SESSION))
    if key < 0:
        sys.exit(77)
    os.execvp(sys.argv[2], sys.argv[2:])
else:
    key = libc.syscall(KEYCTL, SEARCH, ctypes.c_long(SESSION), b"user",
                       b"stoplog-test", 0)
    buffer = ctypes.create_string_buffer(16)
    if key >= 0 and libc.syscall(KEYCTL, READ, key, buffer, 16) > 0:
        print(buffer.value.decode())
