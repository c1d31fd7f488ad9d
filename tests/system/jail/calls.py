# SPDX-License-Identifier: Apache-2.0
# calls.py kernel | keys | uring | terminal : system calls that must fail.
import ctypes
import fcntl
import pty
import sys

libc = ctypes.CDLL(None, use_errno=True)
buffer = ctypes.create_string_buffer(256)

if sys.argv[1] == "kernel":
    for number, args in (
        (321, (5, buffer, 128)),  # bpf
        (298, (buffer, 0, -1, -1, 0)),  # perf_event_open
        (323, (1,)),  # userfaultfd
        (300, (0, 0)),  # fanotify_init
        (447, (0,)),  # memfd_secret
        (175, (buffer, 0, buffer)),  # init_module
        (246, (0, 0, 0, 0)),  # kexec_load
        (169, (0, 0, 0, 0)),  # reboot
        (163, (0,)),  # acct
        (103, (3, buffer, 200)),  # syslog
    ):
        print("CALL", number, libc.syscall(number, *args))
elif sys.argv[1] == "keys":
    print([
        libc.syscall(250, 0, -3, 0),
        libc.syscall(250, 0, -4, 0),
        libc.syscall(248, b"user", b"jc", b"x", 1, -4),
        libc.syscall(249, b"user", b"jc", 0, -4),
    ])
elif sys.argv[1] == "uring":
    for number in (425, 426, 427):
        print(libc.syscall(number, 2, buffer, 0, 0, 0, 0), ctypes.get_errno())
elif sys.argv[1] == "terminal":
    master, slave = pty.openpty()
    for fd in (0, 1, 2, master, slave):
        for request, value in (
            (0x5412, b"x"),
            (0x541C, b"\x02"),
            (0x5423, b"\x15\0\0\0"),
            (0x5423, b"\0\0\0\0"),
        ):
            try:
                fcntl.ioctl(fd, request, value)
                print("OPEN", hex(request))
            except OSError:
                pass
