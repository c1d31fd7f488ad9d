# SPDX-License-Identifier: Apache-2.0
# Tries to look into pid 1 and to trace it; then traces a child of its own,
# which debuggers must be able to do.
import ctypes
import os
import time

libc = ctypes.CDLL(None, use_errno=True)
PTRACE_ATTACH, PTRACE_SEIZE = 16, 0x4206
buffer = ctypes.create_string_buffer(64)


class Iovec(ctypes.Structure):
    _fields_ = [("base", ctypes.c_void_p), ("length", ctypes.c_size_t)]


local = Iovec(ctypes.cast(buffer, ctypes.c_void_p), 64)
remote = Iovec(0x400000, 64)
pidfd = libc.syscall(434, 1, 0)
for name, number, args in (
    ("ptrace", 101, (PTRACE_ATTACH, 1, 0, 0)),
    ("ptrace", 101, (PTRACE_SEIZE, 1, 0, 0)),
    ("process_vm_readv", 310,
     (1, ctypes.byref(local), 1, ctypes.byref(remote), 1, 0)),
    ("process_vm_writev", 311,
     (1, ctypes.byref(local), 1, ctypes.byref(remote), 1, 0)),
    ("process_vm_readv", 310, (1, 0, 0, 0, 0, 0)),
    ("process_vm_writev", 311, (1, 0, 0, 0, 0, 0)),
    ("pidfd_getfd", 438, (pidfd, 0, 0)),
    ("kcmp", 312, (1, 1, 0, 0, 0)),
):
    words = [ctypes.c_long(a) if isinstance(a, int) else a for a in args]
    if libc.syscall(ctypes.c_long(number), *words) >= 0:
        print("OPEN", name)
    elif name.startswith("process_vm") and ctypes.get_errno() not in (1, 38):
        print("OPEN", name, "errno", ctypes.get_errno())
for name in ("mem", "maps", "environ", "auxv", "stack", "pagemap", "fd/3"):
    try:
        if open("/proc/1/" + name, "rb").read(1):
            print("READ", name)
    except OSError:
        pass

child = os.fork()
if child == 0:
    time.sleep(30)
    os._exit(0)
print("TRACED OWN", libc.syscall(101, PTRACE_SEIZE, child, 0, 0))
os.kill(child, 9)
