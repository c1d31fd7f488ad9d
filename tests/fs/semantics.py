#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What a local POSIX file system does, asked of a directory.

    semantics.py prepare DIR      make the files that the tests expect
    semantics.py run DIR [NAME]   run all tests (or one) in that directory

Every test has a directory of its own, prepared alike. Run on ext4 or tmpfs it
must pass whole: that is how the tests themselves are tested. In a mount the
prepared files are lower ones, so each item is asked of files that came from
the real tree and of new ones. As root and as an ordinary user.
"""
import ctypes
import errno
import fcntl
import mmap
import os
import shutil
import signal
import socket
import sqlite3
import stat
import struct
import subprocess
import sys
import tarfile
import threading
import time

libc = ctypes.CDLL(None, use_errno=True)
NOREPLACE, EXCHANGE = 1, 2
ROOT = os.geteuid() == 0
# In a user namespace of one id no other id can be named: EINVAL everywhere.
with open("/proc/self/uid_map") as _map:
    ONE_ID = _map.read().split()[2] == "1"
HELLO = b"hello world\n" * 100
BIG = bytes(range(256)) * 6144  # 1.5 MiB: larger than what is taken whole
TESTS = {}


def test(function):
    TESTS[function.__name__] = function
    return function


def prepare_one(d):
    os.makedirs(f"{d}/dir/deep/deeper")
    write(f"{d}/f", HELLO)
    write(f"{d}/g", b"other\n")
    write(f"{d}/empty", b"")
    write(f"{d}/big", BIG)
    write(f"{d}/dir/a", b"a\n")
    write(f"{d}/dir/deep/b", b"b\n")
    write(f"{d}/dir/deep/deeper/c", b"c\n")
    write(f"{d}/exe", b"#!/bin/sh\necho ran \"$@\"\n")
    os.chmod(f"{d}/exe", 0o755)
    write(f"{d}/suid", b"#!/bin/sh\n")
    os.chmod(f"{d}/suid", 0o6755)
    os.symlink("f", f"{d}/sym")
    os.symlink("/nowhere/at all", f"{d}/dangling")
    write(f"{d}/h1", b"linked\n")
    os.link(f"{d}/h1", f"{d}/h2")
    os.link(f"{d}/h1", f"{d}/dir/h3")
    os.mkfifo(f"{d}/fifo")
    os.makedirs(f"{d}/many")
    for i in range(300):
        write(f"{d}/many/{i:04}", b"%d\n" % i)
    os.setxattr(f"{d}/f", "user.lower", b"value")
    with open(f"{d}/sparse", "wb") as f:
        f.truncate(1 << 20)
        f.seek(256 << 10)
        f.write(b"x" * 4096)
    # A small file is taken whole at its first write; this is none.
    with open(f"{d}/thin", "wb") as f:
        f.truncate(2 << 20)


def write(path, data):
    with open(path, "wb") as f:
        f.write(data)


def read(path):
    with open(path, "rb") as f:
        return f.read()


def fails(code, function, *args, **kw):
    try:
        function(*args, **kw)
    except OSError as e:
        codes = code if isinstance(code, tuple) else (code,)
        assert e.errno in codes, f"{errno.errorcode[e.errno]}, wanted {code}"
        return
    raise AssertionError(f"{function.__name__}{args} should have failed")


def renameat2(a, b, flags):
    if libc.renameat2(-100, os.fsencode(a), -100, os.fsencode(b), flags) < 0:
        e = ctypes.get_errno()
        raise OSError(e, os.strerror(e))


def fallocate(fd, mode, offset, length):
    call = libc.fallocate
    call.argtypes = [ctypes.c_int, ctypes.c_int, ctypes.c_long, ctypes.c_long]
    if call(fd, mode, offset, length) < 0:
        e = ctypes.get_errno()
        raise OSError(e, os.strerror(e))


def ino(path):
    return os.lstat(path).st_ino


def nlink(path):
    return os.lstat(path).st_nlink


@test
def open_modes(d):
    for name in ("f", "new"):
        if name == "new":
            write(f"{d}/new", HELLO)
        fd = os.open(f"{d}/{name}", os.O_RDONLY)
        fails(errno.EBADF, os.write, fd, b"x")
        os.close(fd)
        fd = os.open(f"{d}/{name}", os.O_WRONLY)
        fails(errno.EBADF, os.read, fd, 1)
        os.close(fd)
        fails(errno.EEXIST, os.open, f"{d}/{name}",
              os.O_CREAT | os.O_EXCL | os.O_WRONLY)
        fails(errno.ENOTDIR, os.open, f"{d}/{name}", os.O_DIRECTORY)
        fails(errno.ENOTDIR, os.open, f"{d}/{name}/x", os.O_RDONLY)
    fails(errno.EISDIR, os.open, f"{d}/dir", os.O_WRONLY)
    fails(errno.ELOOP, os.open, f"{d}/sym", os.O_NOFOLLOW | os.O_RDONLY)
    fails(errno.ENOENT, os.open, f"{d}/absent", os.O_RDONLY)
    fails(errno.ENOENT, os.open, f"{d}/dangling", os.O_RDONLY)
    fd = os.open(f"{d}/excl", os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600)
    assert os.fstat(fd).st_mode & 0o777 == 0o600
    os.close(fd)


@test
def truncate_on_open(d):
    write(f"{d}/f", b"short")
    assert read(f"{d}/f") == b"short"
    write(f"{d}/big", b"tiny")
    assert read(f"{d}/big") == b"tiny" and os.stat(f"{d}/big").st_size == 4
    fd = os.open(f"{d}/g", os.O_WRONLY | os.O_TRUNC)
    os.close(fd)
    assert read(f"{d}/g") == b""


@test
def write_in_the_middle(d):
    for name, data in (("f", HELLO), ("big", BIG)):
        with open(f"{d}/{name}", "r+b") as f:
            f.seek(100)
            f.write(b"XYZ")
        want = data[:100] + b"XYZ" + data[103:]
        assert read(f"{d}/{name}") == want
        assert os.stat(f"{d}/{name}").st_size == len(data)


@test
def append_from_many_writers(d):
    for name in ("g", "fresh"):
        start = os.path.getsize(f"{d}/{name}") if name == "g" else 0

        def work(k):
            fd = os.open(f"{d}/{name}", os.O_WRONLY | os.O_APPEND | os.O_CREAT)
            for i in range(50):
                os.write(fd, b"%02d:%03d\n" % (k, i))
            os.close(fd)

        threads = [threading.Thread(target=work, args=(k,)) for k in range(8)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        lines = read(f"{d}/{name}")[start:].splitlines()
        assert len(lines) == 400, len(lines)
        assert len(set(lines)) == 400
        children = []
        for k in range(8):
            pid = os.fork()
            if pid == 0:
                work(k + 10)
                os._exit(0)
            children.append(pid)
        for pid in children:
            assert os.waitpid(pid, 0)[1] == 0
        lines = read(f"{d}/{name}")[start:].splitlines()
        assert len(lines) == len(set(lines)) == 800, len(lines)


@test
def tmpfile(d):
    try:
        fd = os.open(d, os.O_TMPFILE | os.O_RDWR, 0o640)
    except OSError as e:
        assert e.errno == errno.EOPNOTSUPP
        return
    os.write(fd, b"unnamed")
    assert os.fstat(fd).st_nlink == 0
    path = os.fsencode(f"/proc/self/fd/{fd}")
    if libc.linkat(-100, path, -100, os.fsencode(f"{d}/named"), 0x400) < 0:
        raise OSError(ctypes.get_errno(), "linkat")
    os.close(fd)
    assert read(f"{d}/named") == b"unnamed"
    assert os.stat(f"{d}/named").st_mode & 0o777 == 0o640


@test
def rename_files(d):
    number = ino(f"{d}/f")
    os.rename(f"{d}/f", f"{d}/f2")
    assert read(f"{d}/f2") == HELLO and ino(f"{d}/f2") == number
    fails(errno.ENOENT, os.stat, f"{d}/f")
    os.rename(f"{d}/f2", f"{d}/g")
    assert read(f"{d}/g") == HELLO
    os.rename(f"{d}/g", f"{d}/dir/deep/g")
    assert read(f"{d}/dir/deep/g") == HELLO
    assert "g" not in os.listdir(d) and "g" in os.listdir(f"{d}/dir/deep")
    fails(errno.ENOENT, os.rename, f"{d}/nope", f"{d}/x")
    fails(errno.EISDIR, os.rename, f"{d}/dir/a", f"{d}/many")
    fails(errno.ENOTDIR, os.rename, f"{d}/many", f"{d}/dir/a")
    os.rename(f"{d}/h1", f"{d}/h2")  # links of one file: nothing happens
    assert nlink(f"{d}/h1") == 3 and nlink(f"{d}/h2") == 3


@test
def rename_directories(d):
    os.rename(f"{d}/dir", f"{d}/moved")
    assert read(f"{d}/moved/deep/deeper/c") == b"c\n"
    write(f"{d}/moved/deep/new", b"n")
    os.rename(f"{d}/moved/deep", f"{d}/deep2")
    assert read(f"{d}/deep2/new") == b"n" and read(f"{d}/deep2/b") == b"b\n"
    fails(errno.EINVAL, os.rename, f"{d}/deep2", f"{d}/deep2/deeper/x")
    fails((errno.ENOTEMPTY, errno.EEXIST), os.rename, f"{d}/deep2", f"{d}/many")
    os.mkdir(f"{d}/hollow")
    os.rename(f"{d}/deep2", f"{d}/hollow")
    assert sorted(os.listdir(f"{d}/hollow")) == ["b", "deeper", "new"]
    os.mkdir(f"{d}/dir")
    assert os.listdir(f"{d}/dir") == []  # nothing shines through
    fails(errno.ENOENT, os.stat, f"{d}/dir/a")


@test
def rename_flags(d):
    fails(errno.EEXIST, renameat2, f"{d}/f", f"{d}/g", NOREPLACE)
    renameat2(f"{d}/f", f"{d}/f2", NOREPLACE)
    assert read(f"{d}/f2") == HELLO
    renameat2(f"{d}/f2", f"{d}/g", EXCHANGE)
    assert read(f"{d}/g") == HELLO and read(f"{d}/f2") == b"other\n"
    renameat2(f"{d}/f2", f"{d}/dir", EXCHANGE)
    assert read(f"{d}/dir") == b"other\n"
    assert read(f"{d}/f2/deep/b") == b"b\n"
    fails(errno.ENOENT, renameat2, f"{d}/g", f"{d}/none", EXCHANGE)


@test
def hard_links(d):
    assert nlink(f"{d}/h1") == 3
    with open(f"{d}/h1", "ab") as f:
        f.write(b"more\n")
    for name in ("h1", "h2", "dir/h3"):
        assert read(f"{d}/{name}") == b"linked\nmore\n", name
        assert ino(f"{d}/{name}") == ino(f"{d}/h1")
    os.unlink(f"{d}/h1")
    assert nlink(f"{d}/h2") == 2
    os.rename(f"{d}/h2", f"{d}/dir/h4")
    os.link(f"{d}/dir/h4", f"{d}/h5")
    assert nlink(f"{d}/h5") == 3
    os.chmod(f"{d}/dir/h3", 0o600)
    assert os.stat(f"{d}/h5").st_mode & 0o777 == 0o600
    write(f"{d}/n1", b"1")
    os.link(f"{d}/n1", f"{d}/n2")
    assert nlink(f"{d}/n2") == 2 and ino(f"{d}/n1") == ino(f"{d}/n2")
    fails(errno.EEXIST, os.link, f"{d}/n1", f"{d}/f")
    fails(errno.EPERM, os.link, f"{d}/dir", f"{d}/dirlink")
    os.link(f"{d}/sym", f"{d}/symlink2", follow_symlinks=False)
    assert os.readlink(f"{d}/symlink2") == "f"


@test
def symlinks(d):
    assert os.readlink(f"{d}/sym") == "f"
    assert read(f"{d}/sym") == HELLO
    assert os.readlink(f"{d}/dangling") == "/nowhere/at all"
    long = "x/" * 2000
    os.symlink(long, f"{d}/long")
    assert os.readlink(f"{d}/long") == long
    assert os.lstat(f"{d}/long").st_size == len(long)
    odd = b"\xff\xfe\n\\ "
    os.symlink(odd, os.fsencode(f"{d}/odd"))
    assert os.readlink(os.fsencode(f"{d}/odd")) == odd
    os.symlink("loop", f"{d}/loop")
    fails(errno.ELOOP, os.stat, f"{d}/loop")
    fails(errno.EINVAL, os.readlink, f"{d}/f")
    fails(errno.EEXIST, os.symlink, "a", f"{d}/f")


@test
def special_files(d):
    assert stat.S_ISFIFO(os.lstat(f"{d}/fifo").st_mode)
    os.mkfifo(f"{d}/pipe", 0o600)
    for name in ("fifo", "pipe"):
        r = os.open(f"{d}/{name}", os.O_RDONLY | os.O_NONBLOCK)
        w = os.open(f"{d}/{name}", os.O_WRONLY)
        os.write(w, b"through")
        assert os.read(r, 10) == b"through"
        os.close(r)
        os.close(w)
    cwd = os.getcwd()
    os.chdir(d)
    try:
        server = socket.socket(socket.AF_UNIX)
        server.bind("sock")
        server.listen()
        client = socket.socket(socket.AF_UNIX)
        client.connect("sock")
        assert stat.S_ISSOCK(os.lstat("sock").st_mode)
        server.close()
        client.close()
    finally:
        os.chdir(cwd)
    if ROOT:
        os.mknod(f"{d}/null", 0o666 | stat.S_IFCHR, os.makedev(1, 3))
        st = os.lstat(f"{d}/null")
        assert stat.S_ISCHR(st.st_mode) and st.st_rdev == os.makedev(1, 3)
    else:
        fails(errno.EPERM, os.mknod, f"{d}/null", 0o666 | stat.S_IFCHR,
              os.makedev(1, 3))


@test
def unlinked_but_open(d):
    write(f"{d}/new", HELLO)
    for name in ("f", "new"):
        fd = os.open(f"{d}/{name}", os.O_RDWR)
        os.unlink(f"{d}/{name}")
        fails(errno.ENOENT, os.stat, f"{d}/{name}")
        assert os.fstat(fd).st_nlink == 0
        assert os.pread(fd, 5, 0) == b"hello"
        os.pwrite(fd, b"HELLO", 0)
        os.ftruncate(fd, 20)
        assert os.pread(fd, 100, 0) == b"HELLO world\nhello wo"
        os.fchmod(fd, 0o600)
        assert os.fstat(fd).st_size == 20
        os.close(fd)
    held = os.open(f"{d}/dir/deep/deeper", os.O_RDONLY)
    shutil.rmtree(f"{d}/dir")
    assert os.listdir(held) == []
    fails(errno.ENOENT, os.open, "x", os.O_CREAT | os.O_WRONLY, dir_fd=held)
    os.close(held)


@test
def directory_replaced_by_file_and_back(d):
    shutil.rmtree(f"{d}/dir")
    write(f"{d}/dir", b"now a file")
    assert read(f"{d}/dir") == b"now a file"
    fails(errno.ENOTDIR, os.stat, f"{d}/dir/a")
    os.unlink(f"{d}/dir")
    os.mkdir(f"{d}/dir")
    assert os.listdir(f"{d}/dir") == []
    os.mkdir(f"{d}/dir/deep")
    assert os.listdir(f"{d}/dir/deep") == []
    write(f"{d}/dir/a", b"new a")
    assert read(f"{d}/dir/a") == b"new a"
    os.unlink(f"{d}/f")
    os.mkdir(f"{d}/f")
    assert os.listdir(f"{d}/f") == []


@test
def rmdir_rules(d):
    fails((errno.ENOTEMPTY, errno.EEXIST), os.rmdir, f"{d}/dir")
    fails(errno.ENOTDIR, os.rmdir, f"{d}/f")
    fails((errno.EISDIR, errno.EPERM), os.unlink, f"{d}/dir")
    before = nlink(d)
    counted = before > 1  # btrfs counts no subdirectories
    os.mkdir(f"{d}/one")
    assert nlink(d) == before + counted
    os.rmdir(f"{d}/one")
    assert nlink(d) == before
    assert nlink(f"{d}/dir/deep") == (3 if counted else 1)
    os.rename(f"{d}/dir/deep/deeper", f"{d}/dir/deeper")
    assert not counted or (nlink(f"{d}/dir/deep") == 2 and
                           nlink(f"{d}/dir") == 4)
    fails(errno.EINVAL, os.rmdir, f"{d}/dir/.")


@test
def chmod_chown_times(d):
    for name in ("f", "dir", "exe"):
        data_before = os.lstat(f"{d}/{name}")
        os.chmod(f"{d}/{name}", 0o741)
        st = os.stat(f"{d}/{name}")
        assert stat.S_IMODE(st.st_mode) == 0o741
        assert st.st_mtime_ns == data_before.st_mtime_ns
        assert st.st_ctime_ns > data_before.st_ctime_ns
        os.utime(f"{d}/{name}", ns=(1234567890123456789, 987654321987654321))
        st = os.stat(f"{d}/{name}")
        assert st.st_mtime_ns == 987654321987654321
        assert st.st_atime_ns == 1234567890123456789
    os.utime(f"{d}/sym", ns=(5, 7), follow_symlinks=False)
    assert os.lstat(f"{d}/sym").st_mtime_ns == 7
    assert os.stat(f"{d}/f").st_mtime_ns == 987654321987654321
    old = os.stat(f"{d}/g")
    os.utime(f"{d}/g")
    assert os.stat(f"{d}/g").st_mtime_ns > old.st_mtime_ns
    if ROOT:
        os.chown(f"{d}/f", 12, 34)
        st = os.stat(f"{d}/f")
        assert (st.st_uid, st.st_gid) == (12, 34)
        os.chown(f"{d}/sym", 5, 6, follow_symlinks=False)
        assert os.lstat(f"{d}/sym").st_uid == 5
    else:
        fails((errno.EPERM, errno.EINVAL), os.chown, f"{d}/f", 0, -1)


@test
def times_move_as_they_should(d):
    def both(path):
        st = os.stat(path)
        return st.st_mtime_ns, st.st_ctime_ns

    for change in (lambda: write(f"{d}/dir/n", b"x"),
                   lambda: os.unlink(f"{d}/dir/a"),
                   lambda: os.mkdir(f"{d}/dir/sub"),
                   lambda: os.rename(f"{d}/dir/n", f"{d}/dir/m"),
                   lambda: os.symlink("x", f"{d}/dir/s"),
                   lambda: os.link(f"{d}/f", f"{d}/dir/l")):
        before = both(f"{d}/dir")
        time.sleep(0.011)
        change()
        after = both(f"{d}/dir")
        assert after[0] > before[0] and after[1] > before[1]
    before = both(f"{d}/f")
    time.sleep(0.011)
    with open(f"{d}/f", "r+b") as f:
        f.write(b"x")
    after = both(f"{d}/f")
    assert after[0] > before[0] and after[1] > before[1]
    before = os.stat(f"{d}/g").st_ctime_ns
    time.sleep(0.011)
    os.rename(f"{d}/g", f"{d}/g2")
    assert os.stat(f"{d}/g2").st_ctime_ns > before


@test
def modes_of_new_files(d):
    old = os.umask(0o027)
    try:
        write(f"{d}/u", b"")
        assert stat.S_IMODE(os.stat(f"{d}/u").st_mode) == 0o640
        os.mkdir(f"{d}/ud")
        assert stat.S_IMODE(os.stat(f"{d}/ud").st_mode) == 0o750
    finally:
        os.umask(old)
    st = os.stat(f"{d}/u")
    assert st.st_uid == os.geteuid() and st.st_gid == os.getegid()
    if ROOT:
        os.mkdir(f"{d}/sg")
        os.chown(f"{d}/sg", -1, 77)
        os.chmod(f"{d}/sg", 0o2775)
        write(f"{d}/sg/x", b"")
        os.mkdir(f"{d}/sg/sub")
        assert os.stat(f"{d}/sg/x").st_gid == 77
        sub = os.stat(f"{d}/sg/sub")
        assert sub.st_gid == 77 and sub.st_mode & stat.S_ISGID


def as_other(function, uid=12345):
    """Runs function in a child with another identity; its exit code."""
    pid = os.fork()
    if pid == 0:
        code = 0
        try:
            os.setgroups([])
            os.setgid(uid)
            os.setuid(uid)
            function()
        except BaseException as e:  # noqa: the child must not return
            print("as other:", repr(e), file=sys.stderr)
            code = 1
        os._exit(code)
    return os.waitpid(pid, 0)[1]


@test
def permissions_and_sticky(d):
    if not ROOT:
        os.chmod(f"{d}/f", 0)
        fails(errno.EACCES, os.open, f"{d}/f", os.O_RDONLY)
        os.chmod(f"{d}/dir", 0o500)
        fails(errno.EACCES, os.open, f"{d}/dir/n", os.O_CREAT | os.O_WRONLY)
        fails(errno.EACCES, os.unlink, f"{d}/dir/a")
        os.chmod(f"{d}/dir", 0o600)
        fails(errno.EACCES, os.stat, f"{d}/dir/a")
        os.chmod(f"{d}/dir", 0o700)
        return
    os.mkdir(f"{d}/tmp")
    os.chmod(f"{d}/tmp", 0o1777)
    write(f"{d}/tmp/roots", b"x")
    os.chmod(f"{d}/tmp/roots", 0o666)
    os.chmod(f"{d}/f", 0o600)

    def other():
        fails(errno.EACCES, os.open, f"{d}/f", os.O_RDONLY)
        fails((errno.EPERM, errno.EACCES), os.unlink, f"{d}/tmp/roots")
        fails((errno.EPERM, errno.EACCES), os.rename, f"{d}/tmp/roots",
              f"{d}/tmp/mine")
        fails(errno.EPERM, os.chmod, f"{d}/tmp/roots", 0o777)
        fails(errno.EACCES, os.open, f"{d}/n", os.O_CREAT | os.O_WRONLY)
        write(f"{d}/tmp/mine", b"y")
        assert os.stat(f"{d}/tmp/mine").st_uid == 12345
        write(f"{d}/tmp/roots", b"by another")
        os.unlink(f"{d}/tmp/mine")

    assert as_other(other) == 0


@test
def setuid_is_cleared_on_write(d):
    assert stat.S_IMODE(os.stat(f"{d}/suid").st_mode) == 0o6755
    if not ROOT:
        with open(f"{d}/suid", "ab") as f:
            f.write(b"#\n")
        assert stat.S_IMODE(os.stat(f"{d}/suid").st_mode) == 0o755
        os.chmod(f"{d}/suid", 0o4755)
        with open(f"{d}/f", "rb") as a, open(f"{d}/suid", "r+b") as b:
            assert os.copy_file_range(a.fileno(), b.fileno(), 1) == 1
        assert stat.S_IMODE(os.stat(f"{d}/suid").st_mode) == 0o755
        os.chmod(f"{d}/suid", 0o4755)
        with open(f"{d}/suid", "r+b") as f:
            os.posix_fallocate(f.fileno(), 0, 1)
        assert stat.S_IMODE(os.stat(f"{d}/suid").st_mode) == 0o755
        return
    os.chmod(f"{d}/suid", 0o6777)
    write(f"{d}/s2", b"")
    os.chmod(f"{d}/s2", 0o4777)

    def other():
        with open(f"{d}/suid", "ab") as f:
            f.write(b"#\n")
        os.truncate(f"{d}/s2", 3)

    assert as_other(other) == 0
    assert stat.S_IMODE(os.stat(f"{d}/suid").st_mode) == 0o777
    assert stat.S_IMODE(os.stat(f"{d}/s2").st_mode) == 0o777
    os.chmod(f"{d}/suid", 0o6777)
    os.chown(f"{d}/suid", 12, 12)
    assert stat.S_IMODE(os.stat(f"{d}/suid").st_mode) == 0o777


@test
def xattrs(d):
    assert os.getxattr(f"{d}/f", "user.lower") == b"value"
    for name in ("f", "dir", "n"):
        if name == "n":
            write(f"{d}/n", b"")
        p = f"{d}/{name}"
        os.setxattr(p, "user.a", b"1")
        os.setxattr(p, "user.b", b"\0\xff" * 100)
        assert os.getxattr(p, "user.b") == b"\0\xff" * 100
        assert {"user.a", "user.b"} <= set(os.listxattr(p))
        fails(errno.EEXIST, os.setxattr, p, "user.a", b"2", os.XATTR_CREATE)
        fails(errno.ENODATA, os.setxattr, p, "user.z", b"2", os.XATTR_REPLACE)
        os.setxattr(p, "user.a", b"3", os.XATTR_REPLACE)
        os.removexattr(p, "user.a")
        fails(errno.ENODATA, os.getxattr, p, "user.a")
        fails(errno.ENODATA, os.removexattr, p, "user.a")
        fails(errno.EINVAL, os.setxattr, p, "user.", b"1")
        fails(errno.EINVAL, os.getxattr, p, "user.")
        os.setxattr(p, "user.dot.", b"1")
    os.removexattr(f"{d}/f", "user.lower")
    assert "user.lower" not in os.listxattr(f"{d}/f")
    fails(errno.EPERM, os.setxattr, f"{d}/sym", "user.x", b"1",
          follow_symlinks=False)


def acl(entries):
    out = struct.pack("<I", 2)
    for tag, perm, who in entries:
        out += struct.pack("<HHI", tag, perm, who)
    return out


NONE = 0xffffffff


@test
def acls(d):
    me = os.geteuid() - (1 if ONE_ID else 0)
    value = acl([(1, 6, NONE), (2, 6, me + 1), (4, 4, NONE), (16, 6, NONE),
                 (32, 0, NONE)])
    for name in ("f", "n"):
        if name == "n":
            write(f"{d}/n", b"")
        p = f"{d}/{name}"
        os.setxattr(p, "system.posix_acl_access", value)
        assert os.getxattr(p, "system.posix_acl_access") == value
        assert stat.S_IMODE(os.stat(p).st_mode) == 0o660
        os.chmod(p, 0o640)
        now = os.getxattr(p, "system.posix_acl_access")
        assert now == acl([(1, 6, NONE), (2, 6, me + 1), (4, 4, NONE),
                           (16, 4, NONE), (32, 0, NONE)])
    if ROOT:
        os.chmod(f"{d}/f", 0o660)

        def named():
            assert read(f"{d}/f") == HELLO

        assert as_other(named, me + 1) == 0

        def stranger():
            fails(errno.EACCES, os.open, f"{d}/f", os.O_RDONLY)

        assert as_other(stranger, me + 2) == 0
    default = acl([(1, 7, NONE), (2, 5, me + 1), (4, 5, NONE), (16, 5, NONE),
                   (32, 0, NONE)])
    os.setxattr(f"{d}/dir", "system.posix_acl_default", default)
    old = os.umask(0)
    try:
        fd = os.open(f"{d}/dir/x", os.O_CREAT | os.O_WRONLY, 0o666)
        os.close(fd)
        os.mkdir(f"{d}/dir/sub")
    finally:
        os.umask(old)
    assert stat.S_IMODE(os.stat(f"{d}/dir/x").st_mode) == 0o640
    got = os.getxattr(f"{d}/dir/sub", "system.posix_acl_default")
    assert got == default
    assert os.getxattr(f"{d}/dir/x", "system.posix_acl_access") == acl(
        [(1, 6, NONE), (2, 5, me + 1), (4, 5, NONE), (16, 4, NONE),
         (32, 0, NONE)])


@test
def truncation(d):
    for name, data in (("f", HELLO), ("big", BIG)):
        p = f"{d}/{name}"
        os.truncate(p, 10)
        assert read(p) == data[:10]
        os.truncate(p, 5000)
        assert read(p) == data[:10] + b"\0" * 4990
        os.truncate(p, 0)
        assert read(p) == b""
    os.truncate(f"{d}/g", 1 << 40)
    assert os.stat(f"{d}/g").st_size == 1 << 40
    assert os.stat(f"{d}/g").st_blocks < 1000


@test
def sparse_files(d):
    fd = os.open(f"{d}/hole", os.O_CREAT | os.O_RDWR)
    os.pwrite(fd, b"end", 1 << 20)
    assert os.lseek(fd, 0, os.SEEK_DATA) <= 1 << 20
    assert os.pread(fd, 10, 4096) == b"\0" * 10
    assert os.lseek(fd, 0, os.SEEK_HOLE) in (0, (1 << 20) + 3)
    fails(errno.ENXIO, os.lseek, fd, 1 << 21, os.SEEK_DATA)
    os.close(fd)
    fd = os.open(f"{d}/sparse", os.O_RDWR)
    data = os.lseek(fd, 0, os.SEEK_DATA)
    assert data in (0, 256 << 10)
    os.pwrite(fd, b"y", 512 << 10)
    assert os.pread(fd, 4096, 256 << 10) == b"x" * 4096
    assert os.pread(fd, 2, 512 << 10) == b"y\0"
    os.close(fd)
    # Where data is and where holes are, to the page, as cp and tar ask.
    for name in ("thin", "apart"):
        with open(f"{d}/{name}", "r+b" if name == "thin" else "w+b") as f:
            f.truncate(2 << 20)
            for at in (64 << 10, 256 << 10, 512 << 10):
                os.pwrite(f.fileno(), b"z" * 4096, at)
            at, found = 0, []
            while at < 2 << 20:
                try:
                    begin = os.lseek(f.fileno(), at, os.SEEK_DATA)
                except OSError as e:
                    assert e.errno == errno.ENXIO
                    break
                at = os.lseek(f.fileno(), begin, os.SEEK_HOLE)
                found.append((begin >> 10, at - begin))
            assert found == [(64, 4096), (256, 4096), (512, 4096)], found
            assert os.lseek(f.fileno(), 0, os.SEEK_HOLE) == 0
            assert name == "thin" or \
                os.fstat(f.fileno()).st_blocks * 512 <= 5 * 4096


KEEP, PUNCH, ZERO = 1, 2, 16


@test
def fallocate_modes(d):
    write(f"{d}/n", HELLO)
    for name in ("f", "n"):
        fd = os.open(f"{d}/{name}", os.O_RDWR)
        size = len(HELLO)
        fallocate(fd, 0, 0, size + 1000)
        assert os.fstat(fd).st_size == size + 1000
        assert os.pread(fd, 2000, size) == b"\0" * 1000
        fallocate(fd, KEEP, 0, 100000)
        assert os.fstat(fd).st_size == size + 1000
        fallocate(fd, PUNCH | KEEP, 10, 100)
        assert os.pread(fd, 120, 0) == (HELLO[:10] + b"\0" * 100 +
                                        HELLO[110:120])
        fallocate(fd, ZERO, 200, 100)
        assert os.pread(fd, 102, 199) == HELLO[199:200] + b"\0" * 100 + \
            HELLO[300:301]
        fails(errno.EOPNOTSUPP, fallocate, fd, PUNCH, 0, 10)
        fails(errno.EINVAL, fallocate, fd, 0, 0, 0)
        fails(errno.EINVAL, fallocate, fd, 0, -1, 10)
        fallocate(fd, PUNCH | KEEP, size, 1 << 20)  # and beyond the end
        assert os.fstat(fd).st_size == size + 1000
        fallocate(fd, ZERO | KEEP, size, 1 << 20)
        assert os.fstat(fd).st_size == size + 1000
        os.close(fd)


@test
def copy_ranges(d):
    for source in ("f", "big"):
        data = read(f"{d}/{source}")
        a = os.open(f"{d}/{source}", os.O_RDONLY)
        b = os.open(f"{d}/copy", os.O_CREAT | os.O_RDWR | os.O_TRUNC)
        done = 0
        while done < len(data):
            n = os.copy_file_range(a, b, len(data) - done)
            assert n > 0
            done += n
        os.close(a)
        os.close(b)
        assert read(f"{d}/copy") == data
    with open(f"{d}/copy", "r+b") as f:
        f.write(b"changed")
    assert read(f"{d}/big") == BIG
    shutil.copyfile(f"{d}/big", f"{d}/big2")
    assert read(f"{d}/big2") == BIG


@test
def mappings(d):
    write(f"{d}/n", HELLO)
    for name, data in (("f", HELLO), ("big", BIG), ("n", HELLO)):
        fd = os.open(f"{d}/{name}", os.O_RDWR)
        private = mmap.mmap(fd, len(data), mmap.MAP_PRIVATE)
        reader = mmap.mmap(fd, len(data), mmap.MAP_SHARED, mmap.PROT_READ)
        assert reader[:len(data)] == data
        os.pwrite(fd, b"WRITTEN", 0)
        assert reader[:7] == b"WRITTEN"  # across the first write
        shared = mmap.mmap(fd, len(data), mmap.MAP_SHARED)
        shared[100:106] = b"MAPPED"
        assert os.pread(fd, 6, 100) == b"MAPPED"
        private[200:203] = b"prv"
        assert os.pread(fd, 3, 200) == data[200:203]
        shared.flush()
        shared[len(data) - 1:] = b"Z"
        shared.close()
        os.close(fd)
        want = bytearray(data)
        want[0:7] = b"WRITTEN"
        want[100:106] = b"MAPPED"
        want[-1:] = b"Z"
        assert read(f"{d}/{name}") == bytes(want)
        private.close()
        reader.close()


@test
def written_by_one_and_mapped_by_another(d):
    w = os.open(f"{d}/n", os.O_CREAT | os.O_WRONLY)
    os.write(w, b"a" * 8192)
    r = os.open(f"{d}/n", os.O_RDWR)
    m = mmap.mmap(r, 8192, mmap.MAP_SHARED)
    assert m[:4] == b"aaaa"
    os.pwrite(w, b"bbbb", 0)
    assert m[:5] == b"bbbba"
    m[4096:4100] = b"cccc"
    os.pwrite(w, b"dd", 8190)
    assert os.pread(r, 4, 4096) == b"cccc" and m[8190:8192] == b"dd"
    m.close()
    os.close(w)
    os.close(r)
    assert read(f"{d}/n") == (b"bbbb" + b"a" * 4092 + b"cccc" + b"a" * 4090 +
                              b"dd")


@test
def locks(d):
    for name in ("f", "n"):
        a = os.open(f"{d}/{name}", os.O_RDWR | os.O_CREAT)
        b = os.open(f"{d}/{name}", os.O_RDWR)
        fcntl.flock(a, fcntl.LOCK_EX)
        fails(errno.EAGAIN, fcntl.flock, b, fcntl.LOCK_EX | fcntl.LOCK_NB)
        fcntl.flock(a, fcntl.LOCK_UN)
        fcntl.flock(b, fcntl.LOCK_EX | fcntl.LOCK_NB)
        fcntl.lockf(a, fcntl.LOCK_EX, 10, 0)
        pid = os.fork()
        if pid == 0:
            try:
                fcntl.lockf(b, fcntl.LOCK_EX | fcntl.LOCK_NB, 10, 5)
                os._exit(1)
            except OSError:
                os._exit(0)
        assert os.waitpid(pid, 0)[1] == 0
        fcntl.lockf(a, fcntl.LOCK_UN, 10, 0)
        # Of the open file (not of the process), and one that waits.
        one = struct.pack("hhqqi4x", fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0)
        fcntl.fcntl(a, 37, one)
        fails(errno.EAGAIN, fcntl.fcntl, b, 37, one)
        waited = []

        def wait():
            fcntl.fcntl(b, 38, one)
            waited.append(True)

        thread = threading.Thread(target=wait)
        thread.start()
        time.sleep(0.05)
        assert not waited
        os.close(a)
        thread.join()
        assert waited
        os.close(b)


@test
def execution(d):
    assert subprocess.check_output([f"{d}/exe", "x"]) == b"ran x\n"
    shutil.copy("/bin/true", f"{d}/true")
    os.chmod(f"{d}/true", 0o755)
    subprocess.check_call([f"{d}/true"])
    if not ROOT:
        fails(errno.EACCES, subprocess.check_call, [f"{d}/f"])
    shutil.copy(shutil.which("sleep"), f"{d}/sleep")
    p = subprocess.Popen([f"{d}/sleep", "5"])
    time.sleep(0.1)
    fails(errno.ETXTBSY, os.open, f"{d}/sleep", os.O_WRONLY)
    p.kill()
    p.wait()


@test
def names(d):
    longest = "n" * 255
    write(f"{d}/{longest}", b"x")
    assert longest in os.listdir(d)
    fails(errno.ENAMETOOLONG, write, f"{d}/{longest}n", b"")
    fails(errno.ENAMETOOLONG, os.stat, f"{d}/{longest}n")
    every = bytes(b for b in range(1, 256) if b != ord("/"))
    for part in (every[:200], every[200:]):
        write(os.fsencode(d) + b"/" + part, b"odd")
        assert part in os.listdir(os.fsencode(d))
        os.unlink(os.fsencode(d) + b"/" + part)
    here = os.getcwd()
    os.chdir(d)
    try:
        for _ in range(40):
            os.mkdir("d" * 200)
            os.chdir("d" * 200)
        write("bottom", b"deep")
        assert read("bottom") == b"deep"
    finally:
        os.chdir(here)
    subprocess.check_call(["rm", "-rf", f"{d}/" + "d" * 200])


@test
def listing_under_change(d):
    # What stays there the whole time is seen exactly once, even while half of
    # the rest is removed on the way.
    it = os.scandir(f"{d}/many")
    seen = []
    for i, entry in enumerate(it):
        seen.append(entry.name)
        if int(entry.name) % 2 == 1:
            os.unlink(f"{d}/many/{entry.name}")
        if i % 10 == 0:
            write(f"{d}/many/{5000 + i}", b"")
            seen_new = f"{5000 + i}"
            del seen_new
        if i > 2000:
            break
    old = [n for n in seen if int(n) < 5000]
    assert len(old) == len(set(old)) == 300, len(old)
    left = sorted(n for n in os.listdir(f"{d}/many") if int(n) < 5000)
    assert left == [f"{i:04}" for i in range(0, 300, 2)]
    subprocess.check_call(["rm", "-r", f"{d}/many"])
    assert not os.path.exists(f"{d}/many")


@test
def seeking_in_directories(d):
    libc.opendir.restype = ctypes.c_void_p
    libc.readdir.restype = ctypes.c_void_p
    libc.telldir.restype = ctypes.c_long
    for call in (libc.readdir, libc.telldir, libc.closedir, libc.rewinddir):
        call.argtypes = [ctypes.c_void_p]
    libc.seekdir.argtypes = [ctypes.c_void_p, ctypes.c_long]
    stream = libc.opendir(os.fsencode(f"{d}/many"))

    def next_name():
        entry = libc.readdir(stream)
        return entry and ctypes.string_at(entry + 19)

    order, where = [], []
    while True:
        where.append(libc.telldir(stream))
        name = next_name()
        if not name:
            break
        order.append(name)
    assert len(order) == 302 and b"." in order and b".." in order
    for i in (150, 3, 299, 0):
        libc.seekdir(stream, where[i])
        assert next_name() == order[i]
    libc.rewinddir(stream)
    assert next_name() == order[0]
    # Names come and go before and behind: a place stays the place.
    for i in (5, 6, 7, 201, 202):
        if order[i] not in (b".", b".."):
            os.unlink(os.fsencode(f"{d}/many/") + order[i])
    for i in range(200):
        write(f"{d}/many/between{i}", b"")
    for i in (150, 3, 298):
        libc.seekdir(stream, where[i])
        assert next_name() == order[i] or not order[i].isdigit()
    libc.seekdir(stream, where[200])
    rest = []
    while name := next_name():
        rest.append(name)
    # Where "." and ".." stand is nobody's business, and what was removed since
    # opendir may still be told.
    gone = order[5:8] + order[201:203]
    stayed = [[n for n in some if n.isdigit() and n not in gone]
              for some in (rest, order[200:])]
    assert stayed[0] == stayed[1]
    libc.closedir(stream)


@test
def types_in_listings(d):
    kinds = {e.name: e for e in os.scandir(d)}
    assert kinds["f"].is_file(follow_symlinks=False)
    assert kinds["dir"].is_dir(follow_symlinks=False)
    assert kinds["sym"].is_symlink()
    for name, entry in kinds.items():
        assert entry.inode() == ino(f"{d}/{name}"), name


@test
def file_system_numbers(d):
    st = os.statvfs(d)
    assert st.f_blocks > 0 and st.f_namemax == 255 and st.f_bsize > 0
    fd = os.open(f"{d}/f", os.O_RDWR)
    os.write(fd, b"x")
    os.fsync(fd)
    os.fdatasync(fd)
    libc.syncfs(fd)
    os.close(fd)
    fd = os.open(d, os.O_RDONLY)
    os.fsync(fd)
    os.close(fd)


@test
def current_directory(d):
    here = os.getcwd()
    try:
        os.chdir(f"{d}/dir/deep")
        assert os.getcwd() == os.path.realpath(f"{d}/dir/deep")
        os.rename(f"{d}/dir", f"{d}/away")
        assert os.getcwd() == os.path.realpath(f"{d}/away/deep")
        assert read("../a") == b"a\n"
    finally:
        os.chdir(here)


@test
def sqlite_wal(d):
    db = sqlite3.connect(f"{d}/db")
    assert db.execute("pragma journal_mode=wal").fetchone() == ("wal",)
    db.execute("create table t(k integer primary key, v text)")
    other = sqlite3.connect(f"{d}/db")
    for i in range(50):
        with db:
            db.execute("insert into t(v) values (?)", (f"v{i}" * 50,))
        assert other.execute("select count(*) from t").fetchone() == (i + 1,)
    assert db.execute("pragma integrity_check").fetchone() == ("ok",)
    db.execute("pragma wal_checkpoint(truncate)")
    db.close()
    other.close()
    again = sqlite3.connect(f"{d}/db")
    assert again.execute("select count(*) from t").fetchone() == (50,)
    again.close()


@test
def git_works(d):
    run = lambda *a: subprocess.check_output(
        ["git", "-c", "user.name=t", "-c", "user.email=t@t", "-C",
         f"{d}/dir", *a], stderr=subprocess.STDOUT)
    run("init", "-q")
    run("add", "-A")
    run("commit", "-qm", "one")
    assert run("status", "--porcelain") == b""
    write(f"{d}/dir/a", b"changed\n")
    assert run("status", "--porcelain") == b" M a\n"
    run("commit", "-qam", "two")
    run("checkout", "-q", "-b", "side", "HEAD~1")
    assert read(f"{d}/dir/a") == b"a\n"
    run("mv", "deep", "shallow")
    run("commit", "-qm", "three")
    run("merge", "-q", "-m", "m", "master")
    run("gc", "-q")
    run("fsck", "--strict")
    assert run("status", "--porcelain") == b""


@test
def tar_and_shutil(d):
    tree = f"{d}/tree"
    shutil.copytree(f"{d}/dir", tree, symlinks=True)
    with tarfile.open(f"{d}/t.tar", "w") as t:
        t.add(f"{d}/many", "many")
        t.add(f"{d}/f", "f")
        t.add(f"{d}/sym", "sym")
    out = f"{d}/out"
    os.mkdir(out)
    subprocess.check_call(["tar", "-C", out, "-xf", f"{d}/t.tar"])
    assert read(f"{out}/f") == HELLO and os.readlink(f"{out}/sym") == "f"
    assert abs(os.stat(f"{out}/f").st_mtime - os.stat(f"{d}/f").st_mtime) < 1
    assert sorted(os.listdir(f"{out}/many")) == sorted(os.listdir(
        f"{d}/many"))
    shutil.move(out, f"{d}/moved")
    shutil.rmtree(f"{d}/moved")
    shutil.rmtree(f"{d}/dir")
    assert not os.path.exists(f"{d}/dir")
    subprocess.check_call(["cp", "-a", tree, f"{d}/dir"])
    assert read(f"{d}/dir/deep/b") == b"b\n"


@test
def install_patterns(d):
    # As package managers and build tools write: temporary name, rename over;
    # lock files by O_EXCL and by link; a tree staged and swapped in.
    for i in range(30):
        p = f"{d}/f"
        write(f"{p}.tmp{i}", b"%d" % i)
        os.rename(f"{p}.tmp{i}", p)
        assert read(p) == b"%d" % i
    fd = os.open(f"{d}/lock", os.O_CREAT | os.O_EXCL | os.O_WRONLY)
    fails(errno.EEXIST, os.open, f"{d}/lock", os.O_CREAT | os.O_EXCL |
          os.O_WRONLY)
    os.close(fd)
    write(f"{d}/mine", b"pid")
    os.link(f"{d}/mine", f"{d}/lock2")
    assert nlink(f"{d}/mine") == 2
    os.makedirs(f"{d}/.stage/node_modules/p")
    write(f"{d}/.stage/node_modules/p/index.js", b"x")
    os.rename(f"{d}/.stage/node_modules", f"{d}/node_modules")
    os.rmdir(f"{d}/.stage")
    os.symlink("../p/index.js", f"{d}/node_modules/.bin")
    assert read(f"{d}/node_modules/p/index.js") == b"x"


@test
def many_threads(d):
    bad = []

    def work(k):
        try:
            for i in range(40):
                p = f"{d}/t{k}-{i}"
                write(p, b"%d" % i * 100)
                os.rename(p, p + "r")
                assert read(p + "r") == b"%d" % i * 100
                read(f"{d}/many/{(i * 7 + k) % 300:04}")
                os.listdir(f"{d}/many")
                os.unlink(p + "r")
        except BaseException as e:  # reported by the test itself
            bad.append(e)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not bad, bad[0]


def main():
    action, top = sys.argv[1:3]
    chosen = sys.argv[3:] or list(TESTS)
    if action == "prepare":
        for name in TESTS:
            os.mkdir(f"{top}/{name}")
            prepare_one(f"{top}/{name}")
        return 0
    signal.alarm(280)
    failed = 0
    for name in chosen:
        try:
            TESTS[name](f"{top}/{name}")
        except Exception as e:
            failed += 1
            line = e.__traceback__
            while line.tb_next and line.tb_next.tb_frame.f_code.co_filename \
                    == __file__:
                line = line.tb_next
            print(f"FAILED {name}:{line.tb_lineno}: {e!r}")
    print(f"{len(chosen) - failed} of {len(chosen)} passed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
