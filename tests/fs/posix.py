#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Thousands of small cases, each done in a plain directory and in the mount,
there to files of the lower tree and to new ones: the result or errno, and of
everything in the case's directory type, mode, owner, links, size, content and
whether its times moved, must be the same. It asks what pjdfstest asks.

    posix.py prepare DIR          the lower files, before DIR is mounted
    posix.py run PLAIN MOUNT [TEXT]   compares (only the cases that say TEXT)

As root the cases run as root, as an owner, as a member of the owner's group
and as a stranger; as a user all are his own.
"""
import ctypes
import errno
import itertools
import os
import socket
import stat
import sys
import time

libc = ctypes.CDLL(None, use_errno=True)
ROOT = os.geteuid() == 0
with open("/proc/self/uid_map") as _map:
    ONE_ID = _map.read().split()[2] == "1"
# uid, gid, supplementary groups
WHO = {"root": (0, 0, []), "owner": (3001, 3001, [3005]),
       "member": (3002, 3002, [3001]), "stranger": (3003, 3003, [])}
IDS = list(WHO) if ROOT else ["root"]  # for a user "root" means himself
CASES = []


def call(function, *args):
    if function(*args) < 0:
        e = ctypes.get_errno()
        raise OSError(e, os.strerror(e))


def renameat2(a, b, flags):
    call(libc.renameat2, -100, os.fsencode(a), -100, os.fsencode(b), flags)


def write(path, data=b"content\n"):
    with open(path, "wb") as f:
        f.write(data)


def bind(path):
    with socket.socket(socket.AF_UNIX) as s:
        s.bind(path)


def opened(path, flags, use=lambda fd: None, mode=0o644):
    fd = os.open(path, flags, mode)
    try:
        return use(fd)
    finally:
        os.close(fd)


def full(path):
    os.mkdir(path)
    write(f"{path}/inner")


def hard(path):
    write(path)
    os.link(path, "other-link")


MAKE = {
    "none": lambda p: None,
    "file": write,
    "hard": hard,
    "dir": os.mkdir,
    "full": full,
    "fifo": os.mkfifo,
    "sock": bind,
    "sym": lambda p: (write("aim"), os.symlink("aim", p)),
    "symdir": lambda p: (full("aimdir"), os.symlink("aimdir", p)),
    "dangling": lambda p: os.symlink("nowhere", p),
    "loop": lambda p: os.symlink(p, p),
}
if ROOT and not ONE_ID:
    MAKE["chr"] = lambda p: os.mknod(p, 0o644 | stat.S_IFCHR, os.makedev(1, 3))
    MAKE["blk"] = lambda p: os.mknod(p, 0o644 | stat.S_IFBLK, os.makedev(9, 99))
KINDS = list(MAKE)
R, W, RW, C, X, T, A = (os.O_RDONLY | os.O_NONBLOCK, os.O_WRONLY |
                        os.O_NONBLOCK, os.O_RDWR | os.O_NONBLOCK, os.O_CREAT,
                        os.O_EXCL, os.O_TRUNC, os.O_APPEND)
OPENS = {"r": R, "w": W, "rw": RW, "wt": W | T, "rt": R | T, "wa": W | A,
         "wc": W | C, "wcx": W | C | X, "wct": W | C | T, "rc": R | C,
         "dir": R | os.O_DIRECTORY, "cdir": W | C | os.O_DIRECTORY,
         "nofollow": R | os.O_NOFOLLOW, "wcnf": W | C | os.O_NOFOLLOW,
         "path": os.O_PATH, "tmp": os.O_TMPFILE | os.O_RDWR,
         "noatime": R | os.O_NOATIME}
NS = 1_000_000_007_000_000_009


def times(path, a, m, follow=True):
    class Spec(ctypes.Structure):
        _fields_ = [("s", ctypes.c_long), ("n", ctypes.c_long)]
    pair = (Spec * 2)(Spec(*a), Spec(*m))
    call(libc.utimensat, -100, os.fsencode(path), pair,
         0 if follow else 0x100)


NOW, OMIT = (0, (1 << 30) - 1), (0, (1 << 30) - 2)
SET = (1234567890, 123456789)
STAMPS = {"set-set": (SET, SET), "now-now": (NOW, NOW),
          "omit-omit": (OMIT, OMIT), "set-omit": (SET, OMIT),
          "omit-set": (OMIT, SET), "now-omit": (NOW, OMIT),
          "omit-now": (OMIT, NOW), "set-now": (SET, NOW),
          "bad": ((1, 1 << 30), SET), "negative": ((-5, 5), (-7, 7)),
          "2106": ((1 << 32, 1), (1 << 33, 2))}

# What is done to one path p.
ONE = {f"open-{k}": lambda p, f=f: opened(p, f) for k, f in OPENS.items()}
ONE |= {
    "write": lambda p: opened(p, W, lambda fd: os.write(fd, b"xyz")),
    "append": lambda p: opened(p, W | A, lambda fd: os.write(fd, b"xyz")),
    "write0": lambda p: opened(p, W, lambda fd: os.write(fd, b"")),
    "read": lambda p: opened(p, R, lambda fd: os.read(fd, 100)),
    "mkdir": lambda p: os.mkdir(p, 0o755),
    "mkfifo": lambda p: os.mkfifo(p, 0o644),
    "mknod-reg": lambda p: os.mknod(p, 0o644 | stat.S_IFREG),
    "mknod-sock": lambda p: os.mknod(p, 0o644 | stat.S_IFSOCK),
    "mknod-chr": lambda p: os.mknod(p, 0o644 | stat.S_IFCHR,
                                    os.makedev(1, 3)),
    "symlink": lambda p: os.symlink("aim", p),
    "link-to": lambda p: os.link("spare", p),
    "link-from": lambda p: os.link(p, "made", follow_symlinks=False),
    "link-follow": lambda p: call(libc.linkat, -100, os.fsencode(p), -100,
                                  b"made", 0x400),
    "unlink": os.unlink,
    "rmdir": os.rmdir,
    "rename-from": lambda p: os.rename(p, "made"),
    "rename-into": lambda p: os.rename(p, "sparedir/made"),
    "rename-to": lambda p: os.rename("spare", p),
    "rename-dir-to": lambda p: os.rename("sparedir", p),
    "rename-self": lambda p: os.rename(p, p),
    "noreplace-to": lambda p: renameat2("spare", p, 1),
    "exchange": lambda p: renameat2("spare", p, 2),
    "exchange-dir": lambda p: renameat2("sparedir", p, 2),
    "both-flags": lambda p: renameat2("spare", p, 3),
    "whiteout": lambda p: renameat2(p, "made", 4) if not ROOT else None,
    "chmod-600": lambda p: os.chmod(p, 0o600),
    "chmod-7777": lambda p: os.chmod(p, 0o7777),
    "fchmod": lambda p: opened(p, R, lambda fd: os.fchmod(fd, 0o2710)),
    "chown-none": lambda p: os.chown(p, -1, -1),
    "chown-uid": lambda p: os.chown(p, 3002, -1),
    "chown-gid": lambda p: os.chown(p, -1, 3005),
    "chown-group": lambda p: os.chown(p, -1, 3001),
    "chown-both": lambda p: os.chown(p, 3001, 3005),
    "lchown": lambda p: os.lchown(p, 3001, 3005),
    "fchown": lambda p: opened(p, R, lambda fd: os.fchown(fd, -1, 3005)),
    "truncate-0": lambda p: os.truncate(p, 0),
    "truncate-same": lambda p: os.truncate(p, 8),
    "truncate-up": lambda p: os.truncate(p, 5000),
    "truncate-neg": lambda p: call(libc.truncate, os.fsencode(p),
                                   ctypes.c_long(-1)),
    "ftruncate": lambda p: opened(p, W, lambda fd: os.ftruncate(fd, 3)),
    "ftruncate-ro": lambda p: opened(p, R, lambda fd: os.ftruncate(fd, 3)),
    "fallocate": lambda p: opened(p, W, lambda fd: os.posix_fallocate(
        fd, 0, 100)),
    "fallocate-none": lambda p: opened(p, W, lambda fd: os.posix_fallocate(
        fd, 0, 0)),
    "fallocate-ro": lambda p: opened(p, R, lambda fd: os.posix_fallocate(
        fd, 0, 100)),
    "stat": lambda p: os.stat(p).st_mode,
    "lstat": lambda p: os.lstat(p).st_size and None,
    "readlink": os.readlink,
    "listdir": lambda p: sorted(os.listdir(p)),
    "chdir": lambda p: (os.chdir(p), os.chdir(".."))[0],
    "access-r": lambda p: os.access(p, os.R_OK, effective_ids=True),
    "access-w": lambda p: os.access(p, os.W_OK, effective_ids=True),
    "access-x": lambda p: os.access(p, os.X_OK, effective_ids=True),
    "execve": lambda p: run(p),
    "setxattr": lambda p: os.setxattr(p, "user.a", b"v"),
    "lsetxattr": lambda p: os.setxattr(p, "user.a", b"v",
                                       follow_symlinks=False),
    "setxattr-odd": lambda p: os.setxattr(p, "nonsense.a", b"v"),
    "setxattr-empty": lambda p: os.setxattr(p, "user.e", b""),
    "setxattr-long": lambda p: os.setxattr(p, "user." + "n" * 250, b"v"),
    "getxattr": lambda p: os.getxattr(p, "user.none"),
    "removexattr": lambda p: os.removexattr(p, "user.none"),
    "bind": bind,
}
ONE |= {f"utimens-{k}": lambda p, v=v: times(p, *v) for k, v in STAMPS.items()}
ONE["lutimens"] = lambda p: times(p, SET, NOW, False)


def run(path):
    pid = os.fork()
    if pid == 0:
        try:
            os.execv(path, [path or "-"])
        except OSError as e:
            os._exit(e.errno)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def case(name, setup, op, who="root"):
    if who in IDS:
        CASES.append((f"{name} as {who}", setup, op, who))


def spares():
    write("spare", b"spare\n")
    full("sparedir")
    os.chmod("spare", 0o666)
    os.chmod("sparedir", 0o777)


def own(path, who, mode=None):
    """Gives path to somebody, as far as we may."""
    if ROOT and not ONE_ID:
        os.lchown(path, *WHO[who][:2])
    if mode is not None:
        os.chmod(path, mode)


def every_kind():
    """Each operation on each kind of file, at each way to write its name."""
    for kind, (op, do) in itertools.product(KINDS, ONE.items()):
        if op == "bind" and kind != "none":
            continue  # CPython's text of the error differs, not the error

        def setup(kind=kind):
            spares()
            MAKE[kind]("p")
        # Opening a device of ours is refused on a nodev mount alone.
        if kind in ("chr", "blk") and op in DEVICE:
            continue
        for shape in ("p", "p/", "p/.", "p/x", "p/../q"):
            if shape != "p" and (op in ("execve", "bind") or kind not in (
                    "none", "file", "dir", "sym", "symdir")):
                continue
            case(f"{op} {shape} {kind}", setup, lambda do=do, s=shape: do(s))


DEVICE = ({f"open-{k}" for k in OPENS if k not in ("path", "wcx")} |
          {"write", "append", "write0", "read", "fchmod", "fchown",
           "ftruncate", "ftruncate-ro", "fallocate", "fallocate-none",
           "fallocate-ro"})


def names():
    long, longer = "n" * 255, "n" * 256
    deep = "./" * 2047 + "p"           # 4095 bytes: the longest path
    for op, do in ONE.items():
        for path in ("", long, longer, f"{longer}/p", deep, "/" + deep,
                     f"{long}/p"):
            def setup():
                spares()
                write("p")
            if op != "bind":
                case(f"{op} {path[:3]}({len(path)})", setup,
                     lambda do=do, path=path: do(path))
    for target in ("", "t" * 4095, "t" * 4096, "a//b/../c/"):
        case(f"symlink to {target[:9]}({len(target)})", lambda: None,
             lambda t=target: os.symlink(t, "p"))


def two_kinds():
    for a, b, flags in itertools.product(KINDS, KINDS, (0, 1, 2)):
        def setup(a=a, b=b):
            os.mkdir("one")
            os.mkdir("two")
            os.chdir("one")
            MAKE[a]("a")
            os.chdir("../two")
            MAKE[b]("b")
            os.chdir("..")
        case(f"rename {a} {b} {flags}", setup,
             lambda f=flags: renameat2("one/a", "two/b", f))
    shapes = {"onto-child": ("d", "d/inner2"), "onto-own-child": ("d", "d/e"),
              "onto-parent": ("d/e", "d"), "dot": ("d/.", "x"),
              "dotdot": ("d/..", "x"), "to-dot": ("d", "d/e/."),
              "grandchild": ("d", "d/e/f/g"), "same-dir": ("d/e", "d/i"),
              "up": ("d/e/f", "f")}
    for (name, (a, b)), flags in itertools.product(shapes.items(), (0, 1, 2)):
        def setup():
            os.makedirs("d/e/f")
            write("d/inner")
        case(f"rename {name} {flags}", setup,
             lambda a=a, b=b, f=flags: renameat2(a, b, f))
    for flags in (0, 1, 2):
        case(f"rename links {flags}", lambda: hard("p"),
             lambda f=flags: renameat2("p", "other-link", f))


PERMIT = [op for op in ONE if op.split("-")[0] in (
    "open", "write", "mkdir", "mkfifo", "mknod", "symlink", "link", "unlink",
    "rmdir", "rename", "exchange", "chmod", "chown", "lchown", "truncate",
    "ftruncate", "stat", "listdir", "access", "utimens", "setxattr",
    "lutimens", "read", "append", "execve")]


def permissions():
    """Owner, group and others of a file and of its directory."""
    for mode, do, who in itertools.product(
            (0o000, 0o200, 0o400, 0o040, 0o004, 0o666, 0o700), PERMIT, IDS):
        if who == "root" and ROOT and mode not in (0, 0o666):
            continue
        if who in ("member", "stranger") and mode in (0o200, 0o700):
            continue

        def setup(mode=mode):
            os.mkdir("d")
            spares()
            write("d/p")
            own("d/p", "owner", mode)
            own("d", "owner", 0o777)
        case(f"{do} of {mode:03o}", setup, lambda f=ONE[do]: f("d/p"), who)
    for mode, do, who in itertools.product((0o755, 0o555, 0o666, 0o733, 0o070),
                                           PERMIT, IDS):
        if who == "root" and ROOT and mode != 0o666:
            continue
        for kind in ("file", "none"):
            def setup(mode=mode, kind=kind):
                os.mkdir("d")
                spares()
                MAKE[kind]("d/p")
                if kind == "file":
                    own("d/p", "owner", 0o666)
                own("d", "owner", mode)
                os.chmod(".", 0o777)
            case(f"{do} {kind} in {mode:03o}", setup,
                 lambda f=ONE[do]: f("d/p"), who)


def sticky():
    removals = ("unlink", "rmdir", "rename-from", "rename-to", "exchange",
                "rename-dir-to", "exchange-dir", "rename-into")
    for parent, child, kind, do, who in itertools.product(
            WHO, WHO, ("file", "dir", "full", "fifo", "dangling"), removals,
            IDS):
        if len({parent, child, who}) == 3 and "member" in (parent, child):
            continue

        def setup(parent=parent, child=child, kind=kind):
            spares()
            own("spare", "stranger")
            own("sparedir", "stranger")
            os.mkdir("d")
            MAKE[kind]("d/p")
            own("d/p", child)
            own("d", parent, 0o1777)
            os.chmod(".", 0o777)
        case(f"{do} {kind} of {child} in sticky {parent}", setup,
             lambda f=ONE[do]: f("d/p"), who)


def bits():
    """setuid, setgid and what takes them away."""
    changes = ("write", "append", "write0", "truncate-0", "truncate-up",
               "truncate-same", "ftruncate", "open-wt", "fallocate",
               "chown-none", "chown-uid", "chown-gid", "chown-group",
               "chown-both", "lchown", "fchown", "chmod-7777", "fchmod",
               "setxattr", "link-from", "rename-from", "utimens-now-now",
               "utimens-set-set")
    # setgid without the group's x stays where ext4 asks the caller's groups:
    # see docs/DECISIONS.md.
    modes = (0o6777, 0o4777, 0o2777, 0o4666, 0o1777, 0o7711)
    for group, mode, kind, do, who in itertools.product(
            ("owner", "stranger"), modes, ("file", "dir"), changes, IDS):
        if (do, kind) == ("chown-none", "file") and mode & 0o6000 and \
                who in ("member", "stranger"):
            continue  # EPERM on ext4, without effect in a view

        def setup(group=group, mode=mode, kind=kind):
            MAKE[kind]("p")
            if ROOT and not ONE_ID:
                os.chown("p", WHO["owner"][0], WHO[group][1])
            os.chmod("p", mode)
            os.chmod(".", 0o777)
        case(f"{do} of {mode:o} {kind} group {group}", setup,
             lambda f=ONE[do]: f("p"), who)
    makes = {"open": lambda: opened("d/n", W | C, mode=0o6777),
             "mkdir": lambda: os.mkdir("d/n", 0o3777),
             "mknod": lambda: os.mknod("d/n", 0o6777 | stat.S_IFREG),
             "mkfifo": lambda: os.mkfifo("d/n", 0o777),
             "symlink": lambda: os.symlink("x", "d/n"),
             "tmpfile": lambda: opened("d", os.O_TMPFILE | W, lambda fd: (
                 oct(os.fstat(fd).st_mode), os.fstat(fd).st_gid), 0o2777),
             "rename": lambda: (write("m"), os.rename("m", "d/n"))[1]}
    for (name, do), group, mode, mask, who in itertools.product(
            makes.items(), WHO, (0o2777, 0o777, 0o3777), (0, 0o27), IDS):
        def setup(group=group, mode=mode):
            os.mkdir("d")
            own("d", group, mode)
            os.chmod(".", 0o777)

        def masked(do=do, mask=mask):
            old = os.umask(mask)
            try:
                return do()
            finally:
                os.umask(old)
        case(f"{name} in {mode:o} of {group} umask {mask:o}", setup, masked,
             who)


def acls():
    """A default ACL beside the umask, an access ACL beside chmod."""
    def acl(*entries):
        return b"\2\0\0\0" + b"".join(
            t.to_bytes(2, "little") + p.to_bytes(2, "little") +
            (w & 0xffffffff).to_bytes(4, "little") for t, p, w in entries)
    values = {"named": acl((1, 7, -1), (2, 5, 3002), (4, 5, -1), (8, 4, 3005),
                           (16, 7, -1), (32, 0, -1)),
              "small": acl((1, 6, -1), (4, 2, -1), (32, 1, -1))}
    for (name, value), who in itertools.product(values.items(), IDS):
        for mode in (0o666, 0o751, 0o2777):
            def setup(value=value):
                os.mkdir("d")
                os.setxattr("d", "system.posix_acl_default", value)
                write("p")
                own("p", "owner")
                os.setxattr("p", "system.posix_acl_access", value)
                os.chmod(".", 0o777)
                os.chmod("d", 0o777)
            for op, do in {
                    "open": lambda m=mode: opened("d/n", W | C, mode=m),
                    "mkdir": lambda m=mode: os.mkdir("d/n", m),
                    "mkfifo": lambda m=mode: os.mkfifo("d/n", m),
                    "chmod": lambda m=mode: os.chmod("p", m),
                    "chown": lambda: os.chown("p", -1, 3005),
                    "read": lambda: opened("p", R),
                    "rewrite": lambda: opened("p", RW),
                    "remove": lambda: os.removexattr(
                        "p", "system.posix_acl_access")}.items():
                case(f"acl {name} {op} {mode:o}", setup, do, who)
    for size in (0, 3, 5, 12):
        case(f"acl of {size} bytes", lambda: write("p"), lambda s=size:
             os.setxattr("p", "system.posix_acl_access", values["small"][:s]))


def become(who):
    if not ROOT:
        return
    uid, gid, groups = WHO[who]
    os.setgroups(groups)
    os.setegid(gid)
    os.seteuid(uid)


def unbecome():
    if ROOT:
        os.seteuid(0)
        os.setegid(0)
        os.setgroups([])


def look(path="."):
    """Everything beneath, as far as we may look: times as numbers."""
    out = {}
    for top, dirs, files in os.walk(path):
        for name in dirs + files + (["."] if top == path else []):
            p = os.path.normpath(f"{top}/{name}")
            try:
                out[p] = row(p)
            except OSError as e:
                out[p] = errno.errorcode[e.errno]
    return out


def row(p):
    st = os.lstat(p)
    kind = stat.S_IFMT(st.st_mode)
    more = None
    if kind == stat.S_IFREG:
        more = attempt(lambda: opened(p, R | os.O_NOATIME, lambda fd:
                                      os.read(fd, 6000).rstrip(b"\0")))
    elif kind == stat.S_IFLNK:
        more = os.readlink(p)
    xattrs = {}
    if kind != stat.S_IFLNK:
        try:
            xattrs = {n: os.getxattr(p, n) for n in sorted(os.listxattr(p))}
        except OSError as e:
            xattrs = e.errno
    size = st.st_size if kind != stat.S_IFDIR else 0
    stable = (oct(st.st_mode), st.st_nlink, st.st_uid, st.st_gid, st.st_rdev,
              size, more, xattrs)
    return stable, st.st_mtime_ns, st.st_ctime_ns, st.st_atime_ns, st.st_ino


def moved(before, after):
    """What is there now, and which times are others than before."""
    was = {r[4]: r for r in before.values() if not isinstance(r, str)}
    out = {}
    for path, now in after.items():
        if isinstance(now, str):
            out[path] = now
            continue
        old = was.get(now[4])
        marks = ["new" if old is None else ""]
        for i, name in ((1, "mtime"), (2, "ctime")):
            if old is not None and old[i] != now[i]:
                marks.append(name)
        # A time that was set must be it; of the others only that it moved. To
        # look at a symlink moves its atime.
        link = now[0][0].startswith("0o12")
        stamp = [t for t in now[1:2] + (() if link else now[3:4])
                 if t < 1.7e18 or t > 4e18]
        out[path] = now[0], " ".join(marks), stamp
    return out


def attempt(do):
    try:
        return do()
    except OSError as e:
        return errno.errorcode.get(e.errno, e.errno)


def one(top, name, do, who):
    os.chdir(f"{top}/{name}")
    before = look()
    become(who)
    try:
        result = attempt(do)
    finally:
        unbecome()
    os.chdir(f"{top}/{name}")
    return result, moved(before, look())


def fixtures(top, cases):
    os.makedirs(top)
    old = os.umask(0o022)
    for name, (_, setup, _, _) in cases:
        os.mkdir(f"{top}/{name}")
        os.chdir(f"{top}/{name}")
        setup()
    os.umask(old)


# Where a view that a user mounts differs from ext4, why (docs/DECISIONS.md has
# more), and how often: neither more nor fewer.
KNOWN = {"no whiteouts": 24,
         "his own file that he may not read, with a new mode": 8,
         "his own file that he may not read, written to": 8}


def known(title, side, got, want):
    if ROOT:
        return None
    op, rest = title.split(" ", 1)
    if op == "whiteout" and got[0] == "EINVAL":
        return "no whiteouts"
    if side != "lower" or not rest.startswith(("of 000", "of 200", "of 040",
                                               "of 004")):
        return None
    if op.startswith("chmod") and got[0] == want[0] and \
            got[1]["d/p"][0][6] == "EACCES":
        return "his own file that he may not read, with a new mode"
    if rest.startswith("of 200") and got[0] == "EACCES":
        return "his own file that he may not read, written to"
    return None


def tell(title, got, want):
    print(f"{title}: {got[0]!r}, on a plain directory {want[0]!r}")
    for path in sorted({*got[1], *want[1]}):
        a, b = got[1].get(path), want[1].get(path)
        if a != b:
            print(f"    {path}: {a}\n    {' ' * len(path)}  {b}")


def main():
    for part in (every_kind, names, two_kinds, permissions, sticky, bits,
                 acls):
        part()
    text = sys.argv[4] if len(sys.argv) > 4 else ""
    chosen = [(str(i), c) for i, c in enumerate(CASES) if text in c[0]]
    if sys.argv[1] == "prepare":
        fixtures(f"{sys.argv[2]}/lower", list(
            (str(i), c) for i, c in enumerate(CASES)))
        return 0
    plain, mount = sys.argv[2:4]
    fixtures(f"{plain}/plain", chosen)
    fixtures(f"{mount}/new", chosen)
    time.sleep(0.02)  # so that a time that moves is seen to
    bad, kinds, expected = 0, {}, dict.fromkeys(KNOWN, 0)
    for number, (title, _, do, who) in chosen:
        want = one(f"{plain}/plain", number, do, who)
        for side in ("lower", "new"):
            got = one(f"{mount}/{side}", number, do, who)
            why = got != want and known(title, side, got, want)
            if why:
                expected[why] += 1
            elif got != want:
                bad += 1
                kind = title.split()[0]
                kinds[kind] = kinds.get(kind, 0) + 1
                if kinds[kind] <= 4:
                    tell(f"FAILED {title}, {side}", got, want)
    os.chdir("/")
    for kind, count in kinds.items():
        print(f"{kind}: {count}")
    if not ROOT:
        print("known:", "; ".join(f"{n} {why}" for why, n in expected.items()))
        bad += not text and expected != KNOWN
    print(f"{len(chosen)} cases, {bad} differences")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
