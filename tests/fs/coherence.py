#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Edits of the real tree must show in the mount although the kernel caches for
ever: one by one, then a hammer of all of them with readers in the mount.

    coherence.py FSD TOP WAY [SEED [SECONDS]]
"""
import hashlib
import mmap
import os
import random
import shutil
import sys
import threading
import time

from cost import Daemon

PATIENCE = 10
slowest = 0.0


def write(path, data):
    with open(path, "wb") as f:
        f.write(data)


def read(path):
    with open(path, "rb") as f:
        return f.read()


def attempt(function, *args):
    try:
        return function(*args)
    except OSError as e:
        return e.errno


def difference(got, want):
    if not isinstance(got, dict):
        return f"{got!r}, not {want!r}"
    return {k: (got.get(k), want.get(k)) for k in sorted({*got, *want})
            if got.get(k) != want.get(k)}


def shows(what, want, function, *args):
    """function(*args) gives want soon; an OSError counts as its errno."""
    global slowest
    begin = time.monotonic()
    while True:
        got = attempt(function, *args)
        if got == want:
            slowest = max(slowest, time.monotonic() - begin)
            return
        if time.monotonic() - begin > PATIENCE:
            raise AssertionError(f"{what}: {difference(got, want)}")
        time.sleep(0.002)


def one_by_one(b, m):
    os.makedirs(f"{b}/d/sub")
    os.makedirs(f"{b}/outside")
    for name in ("same", "grow", "cut", "over", "gone", "mode", "mapped"):
        write(f"{b}/d/{name}", b"before")
    write(f"{b}/d/linked", b"before")
    os.link(f"{b}/d/linked", f"{b}/outside/other")
    os.symlink("before", f"{b}/d/sym")
    shows("a new directory", True, os.path.isdir, f"{m}/d")
    for name in os.listdir(f"{m}/d"):
        attempt(read, f"{m}/d/{name}")
        os.lstat(f"{m}/d/{name}")
    assert not os.path.exists(f"{m}/d/new")
    here = os.getcwd()
    os.chdir(f"{m}/d/sub")
    held = open(f"{m}/d/gone", "rb")

    with open(f"{b}/d/same", "r+b") as f:
        f.write(b"after!")
    shows("same size", b"after!", read, f"{m}/d/same")
    with open(f"{b}/d/grow", "ab") as f:
        f.write(b" and after")
    shows("append", b"before and after", read, f"{m}/d/grow")
    shows("its size", 16, os.path.getsize, f"{m}/d/grow")
    os.truncate(f"{b}/d/cut", 3)
    shows("truncate", b"bef", read, f"{m}/d/cut")
    write(f"{b}/d/tmp", b"replaced")
    os.rename(f"{b}/d/tmp", f"{b}/d/over")
    shows("rename over", b"replaced", read, f"{m}/d/over")
    shows("and the old name", 2, os.stat, f"{m}/d/tmp")
    os.unlink(f"{b}/d/gone")
    shows("unlink", 2, os.stat, f"{m}/d/gone")
    held.close()
    write(f"{b}/d/new", b"new")
    shows("a name known to be absent", b"new", read, f"{m}/d/new")
    os.chmod(f"{b}/d/mode", 0o600)
    shows("mode", 0o100600, lambda: os.stat(f"{m}/d/mode").st_mode)
    with open(f"{b}/outside/other", "r+b") as f:
        f.write(b"AFTER!")
    shows("through another link", b"AFTER!", read, f"{m}/d/linked")
    with open(f"{b}/d/mapped", "r+b") as f:
        page = mmap.mmap(f.fileno(), 6)
        page[:] = b"stored"
        page.close()
    shows("a store through a mapping", b"stored", read, f"{m}/d/mapped")
    os.unlink(f"{b}/d/sym")
    os.symlink("after", f"{b}/d/sym")
    shows("a symlink", "after", os.readlink, f"{m}/d/sym")
    os.mkdir(f"{b}/d/sub/inner")
    shows("a listing", ["inner"], os.listdir, f"{m}/d/sub")
    shows("times of a directory", os.stat(f"{b}/d/sub").st_mtime_ns,
          lambda: os.stat(f"{m}/d/sub").st_mtime_ns)
    assert os.getcwd() == f"{os.path.realpath(m)}/d/sub"
    os.chdir(here)
    os.rename(f"{b}/d/sub", f"{b}/moved")
    shows("a directory moved away", 2, os.stat, f"{m}/d/sub")
    shows("and to here", ["inner"], os.listdir, f"{m}/moved")
    shutil.rmtree(f"{b}/moved")
    write(f"{b}/moved", b"a file now")
    shows("a directory replaced by a file", b"a file now", read, f"{m}/moved")
    os.unlink(f"{b}/moved")
    os.symlink("/etc", f"{b}/moved")
    shows("and by a symlink", "/etc", os.readlink, f"{m}/moved")
    os.mkdir(f"{b}/replaced")
    write(f"{b}/replaced/x", b"old")
    shows("a file", b"old", read, f"{m}/replaced/x")
    os.rename(f"{b}/replaced", f"{b}/aside")
    os.mkdir(f"{b}/replaced")
    write(f"{b}/replaced/x", b"another")
    shows("a directory replaced by another", b"another", read,
          f"{m}/replaced/x")


def open_files_go_on(b, m):
    """Whoever has a file open keeps it, whatever happens to its name."""
    data = random.Random(5).randbytes(3 << 20)  # more than is read ahead
    changes = {
        "replaced": lambda p: (write(f"{p}~", b"new"), os.rename(f"{p}~", p)),
        "removed": os.unlink,
        "moved": lambda p: os.rename(p, f"{p}-away"),
        "under": lambda p: os.rename(os.path.dirname(p), f"{b}/open-away"),
    }
    os.makedirs(f"{b}/open/under")
    for name, change in changes.items():
        path = "open/under/f" if name == "under" else f"open/{name}"
        write(f"{b}/{path}", data)
        shows("its size", len(data), os.path.getsize, f"{m}/{path}")
        fd = os.open(f"{m}/{path}", os.O_RDWR)
        page = mmap.mmap(fd, len(data), mmap.MAP_SHARED, mmap.PROT_READ)
        assert os.pread(fd, 100, 0) == data[:100]
        change(f"{b}/{path}")
        shows(f"a file {name}", b"new" if name == "replaced" else 2, read,
              f"{m}/{path}")
        assert os.pread(fd, len(data), 0) == data, name
        assert os.fstat(fd).st_size == len(data), name
        assert page[2 << 20:(2 << 20) + 100] == data[2 << 20:][:100], name
        if name in ("replaced", "removed"):  # as one that was unlinked
            assert os.fstat(fd).st_nlink == 0, name
            os.pwrite(fd, b"late", 10)
            assert os.pread(fd, 8, 8) == data[8:10] + b"late" + data[14:16]
        page.close()
        os.close(fd)
    assert read(f"{b}/open/replaced") == b"new"


def touched_stay(b, m):
    write(f"{b}/mine", b"real")
    shows("real", b"real", read, f"{m}/mine")
    write(f"{m}/mine", b"held")
    write(f"{b}/mine", b"real again")
    write(f"{b}/other", b"x")
    shows("a sign that events have passed", b"x", read, f"{m}/other")
    assert read(f"{m}/mine") == b"held"
    os.unlink(f"{m}/other")
    write(f"{b}/other", b"written after the deletion")
    write(f"{b}/sign", b"x")
    shows("another sign", b"x", read, f"{m}/sign")
    assert attempt(read, f"{m}/other") == 2
    assert os.path.exists(f"{b}/other")


def through_a_passing_name(b, m):
    """No event says which file was changed: the name is gone when it is read.
    A listing shows its times, and then its content must be the new one."""
    os.mkdir(f"{b}/passing")
    write(f"{b}/passed", b"0" * 5000)
    for i in range(1, 10):
        os.listdir(f"{m}/passing")
        read(f"{m}/passed")
        os.link(f"{b}/passed", f"{b}/passing/x")
        with open(f"{b}/passing/x", "r+b") as f:
            page = mmap.mmap(f.fileno(), 5000)
            page[0:1] = b"%d" % i
            page.close()
        os.unlink(f"{b}/passing/x")
        write(f"{b}/sign", b"%d" % i)
        shows("a sign", b"%d" % i, read, f"{m}/sign")
        shows("what changed through a passing name", b"%d" % i,
              lambda: (os.listdir(m), read(f"{m}/passed"))[1][:1])


def edit(b, rng):
    d = f"{b}/h{rng.randrange(4)}"
    a, c = (f"{d}/f{rng.randrange(12)}" for _ in range(2))
    kind = rng.randrange(9)
    if kind <= 2:
        write(a, rng.randbytes(rng.randrange(1, 9000)))
    elif kind == 3:
        os.unlink(a)
    elif kind == 4:
        os.rename(a, c)
    elif kind == 5:
        os.link(a, f"{b}/h{rng.randrange(4)}/f{rng.randrange(12)}")
    elif kind == 6:
        os.chmod(a, rng.choice((0o600, 0o644, 0o755)))
    elif kind == 7:
        with open(a, "r+b") as f:
            size = os.fstat(f.fileno()).st_size
            page = mmap.mmap(f.fileno(), size)
            page[0:1] = rng.randbytes(1)
            page.close()
    else:
        other = f"{b}/h{rng.randrange(4)}"
        os.rename(d, f"{b}/swap")
        os.rename(other if other != d else f"{b}/swap", d)
        if other != d:
            os.rename(f"{b}/swap", other)


def look_at(path):
    st = os.lstat(path)
    data = hashlib.md5(read(path)).hexdigest()
    return (st.st_ino, oct(st.st_mode), st.st_size, st.st_mtime_ns,
            st.st_nlink, data[:8])


def snapshot(top):
    out = {}
    for i in range(4):
        d = f"h{i}"
        out[d] = attempt(os.lstat, f"{top}/{d}")
        if not isinstance(out[d], int):
            out[d] = (out[d].st_ino, out[d].st_mtime_ns, out[d].st_nlink)
        names = attempt(os.listdir, f"{top}/{d}")
        if isinstance(names, int):
            out[f"{d}/"] = names
            continue
        for name in names:
            out[f"{d}/{name}"] = attempt(look_at, f"{top}/{d}/{name}")
    return out


def hammer(b, m, seed, seconds):
    for i in range(4):
        os.mkdir(f"{b}/h{i}")
        for k in range(12):
            write(f"{b}/h{i}/f{k}", b"start")
    stop = threading.Event()

    def look():
        rng = random.Random(seed)
        while not stop.is_set():
            attempt(read, f"{m}/h{rng.randrange(4)}/f{rng.randrange(12)}")
            attempt(os.listdir, f"{m}/h{rng.randrange(4)}")
            attempt(os.lstat, f"{m}/h{rng.randrange(4)}/f{rng.randrange(12)}")

    readers = [threading.Thread(target=look, daemon=True) for _ in range(3)]
    for r in readers:
        r.start()
    rng = random.Random(seed)
    end = time.monotonic() + seconds
    rounds = 0
    try:
        while time.monotonic() < end:
            for _ in range(rng.randrange(1, 60)):
                attempt(edit, b, rng)
            rounds += 1
            shows(f"the tree after round {rounds} (seed {seed})", snapshot(b),
                  snapshot, m)
    finally:
        stop.set()
        for r in readers:
            r.join()
    return rounds


def main():
    fsd, top, way = sys.argv[1:4]
    seed = int(sys.argv[4]) if len(sys.argv) > 4 else random.randrange(1 << 30)
    seconds = float(sys.argv[5]) if len(sys.argv) > 5 else 4
    print(f"seed {seed}", flush=True)
    b, m = f"{top}/base", f"{top}/m"
    os.makedirs(b, exist_ok=True)
    os.makedirs(m, exist_ok=True)
    daemon = Daemon(fsd, top, "--way", way)
    try:
        one_by_one(b, m)
        open_files_go_on(b, m)
        touched_stay(b, m)
        through_a_passing_name(b, m)
        shutil.rmtree(f"{b}/d")
        rounds = hammer(b, m, seed, seconds)
        print(f"{rounds} rounds; slowest {slowest * 1000:.0f} ms;",
              daemon.ask("watch"))
        print("drift:", daemon.ask("drift"))
    finally:
        os.chdir("/")
        daemon.end()


if __name__ == "__main__":
    main()
