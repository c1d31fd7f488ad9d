# SPDX-License-Identifier: Apache-2.0
# What the kernel counts for a user, taken until it says no.
#
#   shared.py take KIND [FILE]   all that can be had: prints "TOOK KIND N", and
#                                holds it until FILE exists
#   shared.py one KIND           one more; fails when there is none left
#   shared.py leave              System V IPC that nobody removes
#   shared.py find               what of it is still there
import ctypes
import os
import resource
import signal
import sys
import time

C = ctypes.CDLL(None, use_errno=True)
KEY = 0x5151
CREATE = 0o1000 | 0o666


def inotify():
    return C.inotify_init1(0) >= 0


def signals():
    # Blocked below, so that they stay pending.
    return C.sigqueue(os.getpid(), signal.SIGRTMIN, ctypes.c_void_p(0)) == 0


def locked():
    # Locked segments are counted for the user, not for the process.
    size = 64 << 10
    at = C.shmget(0, size, CREATE)
    done = at >= 0 and C.shmctl(at, 11, None) == 0
    if at >= 0 and (sys.argv[1] == "one" or not done):
        C.shmctl(at, 0, None)
    return done


def aio():
    context = ctypes.c_ulong(0)
    return C.syscall(206, 64, ctypes.byref(context)) == 0


KINDS = {"inotify": inotify, "signals": signals,
         "locked": locked, "aio": aio}


def leave():
    made = [C.shmget(KEY, 4096, CREATE), C.semget(KEY, 1, CREATE),
            C.msgget(KEY, CREATE)]
    print("LEFT", sum(at >= 0 for at in made), flush=True)


def find():
    found = {"shm": C.shmget(KEY, 0, 0), "sem": C.semget(KEY, 0, 0),
             "msg": C.msgget(KEY, 0)}
    for name, at in found.items():
        print("FOUND" if at >= 0 else "NONE", name, flush=True)


def main():
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGRTMIN])
    what = sys.argv[1]
    if what == "leave":
        return leave()
    if what == "find":
        return find()
    take = KINDS[sys.argv[2]]
    if what == "one":
        sys.exit(0 if take() else 1)
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    taken = 0
    while take():
        taken += 1
    print("TOOK", sys.argv[2], taken, flush=True)
    while len(sys.argv) > 3 and not os.path.exists(sys.argv[3]):
        time.sleep(0.05)


main()
