#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Model-based fuzzing: random operations on the mount and on a plain directory,
their results compared one by one and the trees as a whole now and then, with
remount, kill -9, marks and rollbacks mixed in.

    fuzz.py FSD TOP WAY [SEED [OPERATIONS]]

The seed is printed; the same seed does the same again.
"""
import ctypes
import errno
import hashlib
import mmap
import os
import random
import shutil
import signal
import stat
import subprocess
import sys

from cost import Daemon

libc = ctypes.CDLL(None, use_errno=True)
NAMES = [f"n{i}" for i in range(8)]
SIZES = (0, 1, 100, 4095, 4096, 4097, 70000, 1 << 20, (1 << 20) + 4097)


def call(function, *args):
    if function(*args) < 0:
        e = ctypes.get_errno()
        raise OSError(e, os.strerror(e))


def make_lower(top, rng):
    for d in ("", "a/", "a/b/", "c/"):
        os.makedirs(f"{top}/{d}", exist_ok=True)
        for name in NAMES[:5]:
            with open(f"{top}/{d}{name}", "wb") as f:
                f.write(rng.randbytes(rng.choice(SIZES[:7])))
    with open(f"{top}/a/n5", "wb") as f:
        f.write(rng.randbytes(2 << 20))
    os.link(f"{top}/n0", f"{top}/a/n6")
    os.link(f"{top}/n0", f"{top}/c/n7")
    os.symlink("n1", f"{top}/n7")
    os.setxattr(f"{top}/n1", "user.l", b"lower")
    with open(f"{top}/c/n6", "wb") as f:
        f.truncate(300000)
        f.seek(200000)
        f.write(b"data")


def read_by_data(fd, size):
    """As cp and tar read it: what is said to be a hole is not looked at."""
    out, at = bytearray(size), 0
    while at < size:
        try:
            at = os.lseek(fd, at, os.SEEK_DATA)
        except OSError as e:
            assert e.errno == errno.ENXIO
            break
        end = os.lseek(fd, at, os.SEEK_HOLE)
        out[at:end] = os.pread(fd, end - at, at)
        at = end
    return out


class Side:
    """One of the two trees, with its open files."""

    def __init__(self, top):
        self.top = top
        self.files = {}

    def close(self):
        for fd in self.files.values():
            os.close(fd)
        self.files.clear()

    def do(self, op):
        """The result of an operation, an errno as ('E', name)."""
        try:
            return getattr(self, op[0])(*op[1:])
        except OSError as e:
            return "E", errno.errorcode.get(e.errno, e.errno)

    def p(self, path):
        return f"{self.top}/{path}"

    def with_file(self, path, flags, function):
        fd = os.open(self.p(path), flags)
        try:
            return function(fd)
        finally:
            os.close(fd)

    def create(self, path, data, flags, mode):
        fd = os.open(self.p(path), os.O_CREAT | os.O_RDWR | flags, mode)
        os.write(fd, data)
        os.close(fd)

    def create_write_only(self, path, data):
        fd = os.open(self.p(path), os.O_CREAT | os.O_WRONLY)
        os.write(fd, data)
        os.close(fd)

    def write(self, path, offset, data):
        return self.with_file(path, os.O_WRONLY,
                              lambda fd: os.pwrite(fd, data, offset))

    def append(self, path, data):
        return self.with_file(path, os.O_WRONLY | os.O_APPEND,
                              lambda fd: os.write(fd, data))

    def read(self, path, offset, size):
        return self.with_file(path, os.O_RDONLY,
                              lambda fd: os.pread(fd, size, offset))

    def truncate(self, path, size):
        os.truncate(self.p(path), size)

    def store(self, path, offset, data):
        def run(fd):
            size = os.fstat(fd).st_size
            if offset + len(data) > size:
                return "short"
            with mmap.mmap(fd, size) as page:
                page[offset:offset + len(data)] = data
        return self.with_file(path, os.O_RDWR, run)

    def fallocate(self, path, mode, offset, length):
        libc.fallocate.argtypes = [ctypes.c_int, ctypes.c_int, ctypes.c_long,
                                   ctypes.c_long]
        self.with_file(path, os.O_RDWR, lambda fd: call(
            libc.fallocate, fd, mode, offset, length))

    def copy(self, source, offset, path, to, length):
        def run(a):
            return self.with_file(path, os.O_RDWR, lambda b: os.
                                  copy_file_range(a, b, length, offset, to))
        return self.with_file(source, os.O_RDONLY, run)

    def unlink(self, path):
        os.unlink(self.p(path))

    def mkdir(self, path):
        os.mkdir(self.p(path))

    def rmdir(self, path):
        os.rmdir(self.p(path))

    def remove_tree(self, path):
        if os.path.islink(self.p(path)) or not os.path.isdir(self.p(path)):
            return "no directory"
        shutil.rmtree(self.p(path))

    def rename(self, a, b, flags):
        call(libc.renameat2, -100, os.fsencode(self.p(a)), -100,
             os.fsencode(self.p(b)), flags)

    def link(self, a, b):
        os.link(self.p(a), self.p(b), follow_symlinks=False)

    def symlink(self, target, path):
        os.symlink(target, self.p(path))

    def chmod(self, path, mode):
        # An ordinary user must be able to walk what we compare.
        if os.path.isdir(self.p(path)):
            mode |= 0o700
        os.chmod(self.p(path), mode)

    def utime(self, path, ns):
        os.utime(self.p(path), ns=(ns, ns), follow_symlinks=False)

    def setxattr(self, path, name, value, flags):
        os.setxattr(self.p(path), name, value, flags, follow_symlinks=False)

    def removexattr(self, path, name):
        os.removexattr(self.p(path), name, follow_symlinks=False)

    def list(self, path):
        return sorted(os.listdir(self.p(path)))

    def open(self, slot, path):
        if slot in self.files:
            os.close(self.files.pop(slot))
        self.files[slot] = os.open(self.p(path), os.O_RDWR)

    def use(self, slot, offset, data):
        if slot not in self.files:
            return "closed"
        fd = self.files[slot]
        before = os.pread(fd, 100, offset)
        os.pwrite(fd, data, offset)
        st = os.fstat(fd)
        return before, st.st_size, st.st_nlink

    def stat(self, path):
        st = os.lstat(self.p(path))
        size = st.st_size if not stat.S_ISDIR(st.st_mode) else 0
        return st.st_mode, st.st_nlink, st.st_uid, st.st_gid, size

    def tree(self):
        out, groups = {}, {}
        for path, dirs, files in os.walk(self.top):
            for name in sorted(dirs + files) + ([""] if path == self.top
                                                else []):
                p = os.path.join(path, name)
                st = os.lstat(p)
                key = os.path.relpath(p, self.top)
                row = [st.st_mode, st.st_uid, st.st_gid, st.st_nlink]
                if stat.S_ISREG(st.st_mode):
                    with open(p, "rb") as f:
                        data = f.read()
                        row += [st.st_size, hashlib.md5(data).hexdigest()]
                        by_data = data == read_by_data(f.fileno(), st.st_size)
                        row.append(by_data or "data where a hole is said")
                    groups.setdefault(st.st_ino, []).append(key)
                elif stat.S_ISLNK(st.st_mode):
                    row.append(os.readlink(p))
                if not stat.S_ISLNK(st.st_mode):
                    row.append(sorted((n, os.getxattr(p, n))
                                      for n in os.listxattr(p)
                                      if n.startswith("user.")))
                # A time far in the past was set by us: it must have stayed.
                row.append(st.st_mtime_ns if st.st_mtime_ns < 10**18 else 0)
                out[key] = row
        for names in groups.values():
            for name in names:
                out[name].append(sorted(names))
        return out


class Fuzz:
    def __init__(self, fsd, top, way, seed):
        self.rng = random.Random(seed)
        self.fsd, self.top, self.way = fsd, top, way
        os.makedirs(f"{top}/base")
        os.makedirs(f"{top}/m")
        make_lower(f"{top}/base", self.rng)
        subprocess.check_call(["cp", "-a", f"{top}/base", f"{top}/plain"])
        self.mount, self.plain = Side(f"{top}/m"), Side(f"{top}/plain")
        self.marks = []
        self.log = []
        self.start()

    def start(self):
        self.daemon = Daemon(self.fsd, self.top, "--way", self.way)

    def path(self):
        rng = self.rng
        depth = rng.choice((0, 0, 1, 1, 1, 2, 3))
        parts = [rng.choice(("a", "b", "c", "d")) for _ in range(depth)]
        leaf = rng.choice(NAMES if rng.random() < 0.8 else ["a", "b", "c",
                                                            "d"])
        return "/".join(parts + [leaf])

    def operation(self):
        rng = self.rng
        offset = rng.choice((0, 0, 1, 4095, 4096, 50000, rng.randrange(
            1 << 21)))
        data = rng.randbytes(rng.choice((1, 10, 4096, 5000, 70000)))
        mode = rng.choice((0o600, 0o644, 0o755))
        return rng.choice((
            lambda: ("create", self.path(), data, rng.choice(
                (0, os.O_EXCL, os.O_TRUNC)), mode),
            lambda: ("create_write_only", self.path(), data),
            lambda: ("write", self.path(), offset, data),
            lambda: ("write", self.path(), offset, data),
            lambda: ("append", self.path(), data[:5000]),
            lambda: ("read", self.path(), offset, 5000),
            lambda: ("truncate", self.path(), rng.choice(SIZES)),
            lambda: ("store", self.path(), offset, data[:100]),
            lambda: ("fallocate", self.path(), rng.choice((0, 1, 3, 16, 17)),
                     offset, rng.choice((1, 4096, 30000))),
            lambda: ("copy", self.path(), offset, self.path(), rng.choice(
                (0, 4096, 100)), rng.choice((100, 70000))),
            lambda: ("unlink", self.path()),
            lambda: ("mkdir", self.path()),
            lambda: ("rmdir", self.path()),
            lambda: ("remove_tree", self.path()) if rng.random() < 0.2
            else ("list", self.path()),
            lambda: ("rename", self.path(), self.path(), rng.choice(
                (0, 0, 0, 1, 2))),
            lambda: ("rename", self.path(), self.path(), 0),
            lambda: ("link", self.path(), self.path()),
            lambda: ("symlink", rng.choice(("n1", "a", "x" * 300)),
                     self.path()),
            lambda: ("chmod", self.path(), rng.choice(
                (0o600, 0o644, 0o755, 0o4755, 0o2775, 0o1777))),
            lambda: ("utime", self.path(), rng.randrange(10**17)),
            lambda: ("setxattr", self.path(), rng.choice(
                ("user.a", "user.l")), data[:50], rng.choice((0, 1, 2))),
            lambda: ("removexattr", self.path(), "user.l"),
            lambda: ("list", os.path.dirname(self.path())),
            lambda: ("stat", self.path()),
            lambda: ("open", rng.randrange(4), self.path()),
            lambda: ("use", rng.randrange(4), offset, data[:3000]),
        ))()

    def compare(self, what):
        a, b = self.mount.tree(), self.plain.tree()
        if a != b:
            for k in sorted({*a, *b}):
                if a.get(k) != b.get(k):
                    print(f"{k}:\n  mount {a.get(k)}\n  plain {b.get(k)}")
            self.fail(f"trees differ {what}")

    def fail(self, message):
        for line in self.log[-12:]:
            print("  ", line)
        raise SystemExit(f"FAILED: {message}")

    def event(self):
        """Between two operations: remount, death, mark, rollback."""
        kind = self.rng.choice(("remount", "kill", "mark", "rollback",
                                "compare", "compare"))
        self.log.append(kind)
        if kind in ("remount", "kill"):
            self.mount.close()
            self.plain.close()
            if kind == "kill":
                self.daemon.process.send_signal(signal.SIGKILL)
                self.daemon.process.wait()
            else:
                self.daemon.end()
            self.start()
        elif kind == "mark":
            position = self.daemon.ask("mark x")
            assert position.isdigit(), position
            copy = f"{self.top}/mark{len(self.marks)}"
            subprocess.check_call(["cp", "-a", self.plain.top, copy])
            self.marks.append((position, copy))
        elif kind == "rollback" and self.marks:
            self.mount.close()
            self.plain.close()
            position, copy = self.rng.choice(self.marks)
            answer = self.daemon.ask(f"rollback {position}")
            if answer != "ok":
                self.fail(f"rollback: {answer}")
            shutil.rmtree(self.plain.top)
            subprocess.check_call(["cp", "-a", copy, self.plain.top])
        self.compare(f"after {kind}")

    def run(self, operations):
        every = max(operations // 40, 20)
        for i in range(operations):
            op = self.operation()
            short = tuple(x if not isinstance(x, bytes) or len(x) < 8 else
                          f"<{len(x)}>" for x in op)
            got, want = self.mount.do(op), self.plain.do(op)
            self.log.append(f"{i} {short} -> {str(want)[:60]}")
            if got != want:
                self.fail(f"{short}: mount {str(got)[:300]}, "
                          f"plain {str(want)[:300]}")
            if i % every == every - 1:
                self.event()
        self.compare("at the end")
        stats = self.daemon.ask("stats")
        self.mount.close()
        self.plain.close()
        self.daemon.end()
        return stats


def main():
    fsd, top, way = sys.argv[1:4]
    seed = int(sys.argv[4]) if len(sys.argv) > 4 else random.randrange(1 << 30)
    operations = int(sys.argv[5]) if len(sys.argv) > 5 else 1500
    print(f"seed {seed}, {operations} operations", flush=True)
    fuzz = Fuzz(fsd, top, way, seed)
    try:
        print(fuzz.run(operations))
    finally:
        if fuzz.daemon.process.poll() is None:
            fuzz.daemon.process.stdin.close()
            fuzz.daemon.process.wait()


if __name__ == "__main__":
    main()
