# SPDX-License-Identifier: Apache-2.0
# deny.py ERRNO CALL[,CALL...] CMD... : runs CMD on a kernel that answers these
# system calls with ERRNO, as one would that lacks or forbids them.
import ctypes
import errno
import os
import struct
import sys

X86 = {"clone3": 435, "unshare": 272, "mount": 165, "open_tree": 428,
       "fsopen": 430, "fsmount": 432, "move_mount": 429, "mount_setattr": 442,
       "seccomp": 317, "landlock_create_ruleset": 444}
ARM = X86 | {"unshare": 97, "mount": 40, "seccomp": 277}
NUMBERS = X86 if os.uname().machine == "x86_64" else ARM

code = getattr(errno, sys.argv[1])
program = [(0x20, 0, 0, 0)]  # load the number
for name in sys.argv[2].split(","):
    program += [(0x15, 0, 1, NUMBERS[name]), (0x06, 0, 0, 0x50000 | code)]
program.append((0x06, 0, 0, 0x7FFF0000))
raw = b"".join(struct.pack("HBBI", *one) for one in program)
buffer = ctypes.create_string_buffer(raw)


class Program(ctypes.Structure):
    _fields_ = [("length", ctypes.c_ushort), ("filter", ctypes.c_void_p)]


libc = ctypes.CDLL(None, use_errno=True)
# An ordinary user may filter only so; root need not, and setuid helpers work.
if os.getuid() != 0 and libc.prctl(38, 1, 0, 0, 0) != 0:
    sys.exit("deny.py: no_new_privs: %d" % ctypes.get_errno())
argument = Program(len(program), ctypes.addressof(buffer))
if libc.prctl(22, 2, ctypes.byref(argument), 0, 0) != 0:
    sys.exit("deny.py: seccomp: %d" % ctypes.get_errno())
os.execvp(sys.argv[3], sys.argv[3:])
