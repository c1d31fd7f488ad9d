# SPDX-License-Identifier: Apache-2.0
"""Where a benchmark lies: a directory on the file system to be measured, and
the trees that the workloads work on.

An aged root disk makes native file creation ten times slower and flatters every
overlay, so the default is a fresh ext4 in a loop file. A bed is made, used and
removed by one process; with-statements take care of the last.
"""
import contextlib
import os
import random
import shutil
import subprocess
import tempfile
import time

YESTERDAY = time.time() - 86400


def sh(*argv, **options):
    options.setdefault("check", True)
    options.setdefault("stdout", subprocess.DEVNULL)
    options.setdefault("stderr", subprocess.PIPE)
    return subprocess.run([str(a) for a in argv], **options)


@contextlib.contextmanager
def bed(kind, size="6G"):
    """Yields a directory on a fresh `kind`: ext4, xfs, btrfs, tmpfs, or disk (the
    machine's own)."""
    top = tempfile.mkdtemp(prefix="stoplog-bench.", dir=os.environ.get("TMPDIR", "/var/tmp"))
    os.chmod(top, 0o755)
    mounted = False
    try:
        place = os.path.join(top, "bed")
        os.mkdir(place)
        if kind == "tmpfs":
            sh("mount", "-t", "tmpfs", "-o", f"size={size}", "bench", place)
            mounted = True
        elif kind != "disk":
            image = os.path.join(top, "image")
            sh("truncate", "-s", size, image)
            force = "-F" if kind == "ext4" else "-f"
            sh(f"mkfs.{kind}", "-q", force, image)
            sh("mount", "-o", "loop", image, place)
            mounted = True
        yield place
    finally:
        if mounted:
            sh("umount", "-l", place, check=False)
        shutil.rmtree(top, ignore_errors=True)


def fill_tree(top, files, seed=1):
    """A tree that looks like a source tree: 20 files a directory, three levels,
    sizes from 200 bytes to 40 KiB, text. The same for the same seed."""
    rng = random.Random(seed)
    words = [f"word{n}" for n in range(400)]
    os.makedirs(top)
    for n in range(files):
        directory = os.path.join(top, f"d{n // 400:03}", f"e{n // 20 % 20:02}")
        if n % 20 == 0:
            os.makedirs(directory, exist_ok=True)
        length = min(int(rng.paretovariate(1.1) * 30), 6000)
        text = " ".join(rng.choices(words, k=length))
        with open(os.path.join(directory, f"file{n}.c"), "w", encoding="ascii") as f:
            f.write(text.replace("word3 ", "word3\n"))
        os.utime(f.name, (YESTERDAY, YESTERDAY))


def make_tree(top, files, seed=1):
    """Such a tree, committed to git, so that `git status` has something to compare
    with; as in a repository that was there yesterday, git need not read files that
    are as old as its index, and has its objects in a pack."""
    fill_tree(top, files, seed)
    env = dict(os.environ, GIT_CONFIG_GLOBAL="/dev/null", GIT_CONFIG_NOSYSTEM="1")
    for argv in (["init", "-q"], ["add", "-A"],
                 ["-c", "user.name=b", "-c", "user.email=b@b", "commit", "-qm", "b"],
                 ["repack", "-adq"]):
        sh("git", "-C", top, "-c", "gc.auto=0", *argv, env=env)
    return top


def make_project(top, units=24):
    """A small C project with a CMakeLists.txt, for the build workload."""
    os.makedirs(top)
    names = [f"unit{n}" for n in range(units)]
    for name in names:
        body = "".join(
            f"int {name}_{k}(int x) {{ int s = 0; for (int i = 0; i < x; ++i)"
            f" s += i * {k} ^ x; return s + (int)strlen(\"{name}\"); }}\n" for k in range(40))
        with open(os.path.join(top, name + ".c"), "w", encoding="ascii") as f:
            f.write("#include <stdio.h>\n#include <stdlib.h>\n#include <string.h>\n" + body)
    with open(os.path.join(top, "main.c"), "w", encoding="ascii") as f:
        f.write("int main(void) { return 0; }\n")
    with open(os.path.join(top, "CMakeLists.txt"), "w", encoding="ascii") as f:
        f.write("cmake_minimum_required(VERSION 3.10)\nproject(bench C)\n"
                f"add_executable(prog main.c {' '.join(n + '.c' for n in names)})\n")
    return top
