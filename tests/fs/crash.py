#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""kill -9 of the daemon at any instant, with reads and invalidations in
flight: nobody hangs, nothing that had returned is lost, the dead mount is
cleared by the next start, and the view is the same, inode numbers included.

    crash.py FSD TOP WAY [SEED [ROUNDS]]
"""
import errno
import os
import random
import signal
import subprocess
import sys
import threading
import time

from cost import Daemon

# The last: of a request that a thread died with before it had it (io_uring).
GONE = (errno.ENOTCONN, errno.ECONNABORTED, errno.ECANCELED)


def ignore_death(function, *args):
    try:
        return function(*args)
    except OSError:
        return None


class Writer(threading.Thread):
    """Appends numbered lines, makes and renames files; keeps what returned."""

    def __init__(self, top, k):
        super().__init__(daemon=True)
        self.dir = f"{top}/w{k}"
        self.lines, self.names, self.error = 0, [], None

    def run(self):
        try:
            os.makedirs(self.dir, exist_ok=True)
            log = os.open(f"{self.dir}/log", os.O_CREAT | os.O_WRONLY |
                          os.O_APPEND)
            i = 0
            while True:
                os.write(log, b"%07d\n" % i)
                self.lines = i + 1
                with open(f"{self.dir}/t", "wb") as f:
                    f.write(b"%d" % i)
                os.rename(f"{self.dir}/t", f"{self.dir}/n{i % 50}")
                self.names = self.names[-49:] + [(i % 50, i)]
                i += 1
        except OSError as e:
            self.error = e


def readers(m, base):
    """Processes that read and map lower files which the host rewrites."""
    code = f"""
import os, mmap
while True:
    for i in range(20):
        try:
            fd = os.open("{m}/low/f%d" % i, os.O_RDONLY)
            os.pread(fd, 1 << 20, 0)
            os.statvfs("{m}")  # asks always; what is cached still reads
            mmap.mmap(fd, 4096, mmap.MAP_SHARED, mmap.PROT_READ)[:10]
            os.close(fd)
        except OSError as e:
            if e.errno in {GONE}: raise SystemExit(0)
        except ValueError:
            pass
"""
    return [subprocess.Popen([sys.executable, "-c", code],
                             stderr=subprocess.DEVNULL) for _ in range(2)]


def edit_forever(base, stop):
    rng = random.Random(1)
    while not stop.is_set():
        with open(f"{base}/low/f{rng.randrange(20)}", "wb") as f:
            f.write(rng.randbytes(rng.randrange(1, 300000)))


def check(m, writers):
    for w in writers:
        with open(f"{w.dir}/log", "rb") as f:
            lines = f.read().split()
        assert len(lines) in (w.lines, w.lines + 1), (len(lines), w.lines)
        assert lines == [b"%07d" % i for i in range(len(lines))]
        for slot, value in w.names:
            with open(f"{w.dir}/n{slot}", "rb") as f:
                got = int(f.read())
            # One more may have been in flight.
            assert got in (value, value + 50), (slot, got, value)


def look(m):
    out = {}
    for path, dirs, files in os.walk(m):
        if path == m:
            dirs[:] = [d for d in dirs if d.startswith("w")]
        for name in dirs + files:
            p = f"{path}/{name}"
            st = os.lstat(p)
            out[os.path.relpath(p, m)] = (st.st_ino, st.st_mode, st.st_size,
                                          st.st_mtime_ns, st.st_nlink)
    return out


def one_round(fsd, top, way, rng):
    base, m = f"{top}/base", f"{top}/m"
    daemon = Daemon(fsd, top, "--way", way)
    subprocess.check_call(["rm", "-rf"] + [f"{m}/w{k}" for k in range(3)])
    stop = threading.Event()
    editor = threading.Thread(target=edit_forever, args=(base, stop),
                              daemon=True)
    editor.start()
    writers = [Writer(m, k) for k in range(3)]
    processes = readers(m, base)
    for w in writers:
        w.start()
    time.sleep(rng.uniform(0.2, 1.2))
    daemon.process.send_signal(signal.SIGKILL)
    begin = time.monotonic()
    try:
        for w in writers:
            w.join(60)
            assert not w.is_alive(), "a writer hangs"
            # EIO: the daemon died while the kernel handed it this very request.
            assert w.error.errno in GONE + (errno.EIO,), w.error
        for p in processes:
            p.wait(60)
        daemon.process.wait(60)
    finally:
        stop.set()
        for p in processes:
            p.kill()
    waited = time.monotonic() - begin
    editor.join()
    # The next start clears the dead mount by itself.
    daemon = Daemon(fsd, top, "--way", way)
    check(m, writers)
    before = look(m)
    daemon.end()
    daemon = Daemon(fsd, top, "--way", way)
    after = look(m)
    assert before == after, {k: (before.get(k), after.get(k))
                             for k in {*before, *after}
                             if before.get(k) != after.get(k)}
    daemon.end()
    return waited, sum(w.lines for w in writers)


def main():
    fsd, top, way = sys.argv[1:4]
    seed = int(sys.argv[4]) if len(sys.argv) > 4 else random.randrange(1 << 30)
    rounds = int(sys.argv[5]) if len(sys.argv) > 5 else 4
    print(f"seed {seed}", flush=True)
    rng = random.Random(seed)
    os.makedirs(f"{top}/base/low")
    os.makedirs(f"{top}/m")
    for i in range(20):
        with open(f"{top}/base/low/f{i}", "wb") as f:
            f.write(b"x" * 100000)
    for i in range(rounds):
        waited, lines = one_round(fsd, top, way, rng)
        print(f"round {i}: {lines} lines kept, all free after "
              f"{waited * 1000:.0f} ms", flush=True)


if __name__ == "__main__":
    main()
