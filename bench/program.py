# SPDX-License-Identifier: Apache-2.0
"""The program itself: change set and patch, commit, undo, marks, rollback, fork
and export of many files, each beside the plain tool that does the nearest thing;
and the daemon's memory for each node that the kernel holds.

Adds to `samples` as the workloads do; the first column is the plain tool.
"""
import os
import shutil
import subprocess
import sys
import time

from bed import make_tree, sh
from views import Stoplog


def clock(function, *args, **options):
    begin = time.monotonic()
    function(*args, **options)
    return time.monotonic() - begin


def edit(at, count):
    """Appends a line to `count` files beneath `at`."""
    done = 0
    for top, directories, files in os.walk(at):
        directories[:] = sorted(d for d in directories if d != ".git")
        for name in sorted(files):
            with open(os.path.join(top, name), "a", encoding="ascii") as f:
                f.write("one more line\n")
            done += 1
            if done == count:
                return


def memory_of(pids):
    """Private bytes of some processes."""
    total = 0
    for pid in pids:
        with open(f"/proc/{pid}/smaps_rollup", encoding="ascii") as f:
            total += sum(int(line.split()[1]) * 1024 for line in f
                         if line.startswith(("Private_Clean", "Private_Dirty")))
    return total


def add(samples, part, view, took):
    samples.setdefault(("program", part), {}).setdefault(view, []).append(took)


def one_round(options, place, lower, count, samples, missing):
    work = os.path.join(place, "program")
    os.mkdir(work)
    plain, ours = os.path.join(work, "plain"), os.path.join(work, "w")
    sh("cp", "-a", lower, plain)
    sh("cp", "-a", lower, ours)
    view = Stoplog(options)
    try:
        merged = view.open(ours, os.path.join(work, "view"))
        edit(merged, count)
        edit(plain, count)
        add(samples, f"patch of {count} files", "plain tool",
            clock(sh, "git", "diff", "--no-index", lower, plain, check=False))
        add(samples, f"patch of {count} files", "stoplog", clock(view.call, "diff", "--no-pager"))
        add(samples, f"change set of {count} files", "plain tool",
            clock(sh, "git", "diff", "--no-index", "--name-status", lower, plain, check=False))
        add(samples, f"change set of {count} files", "stoplog", clock(view.call, "status"))
        start = clock(sh, options.stoplog, "version")
        for part, argv in (("mark", ["snapshot", "-m", "bench"]), ("fork", ["fork", "other"]),
                           ("rollback", ["rollback", "bench"])):
            add(samples, part, "plain tool", start)
            add(samples, part, "stoplog", clock(view.call, *argv))
        packed, bundle = os.path.join(work, "x.tar.zst"), os.path.join(work, "x.bundle")
        add(samples, "export", "plain tool",
            clock(sh, "tar", "--zstd", "-cf", packed, "-C", plain, "."))
        try:
            add(samples, "export", "stoplog", clock(view.call, "export", bundle))
        except subprocess.CalledProcessError as error:
            said = error.stderr.decode(errors="replace").strip().replace("\n", "; ")
            if f"export: {said}" not in missing:
                missing.append(f"export: {said}")
        copy = os.path.join(work, "copy")
        add(samples, f"commit of {count} files", "plain tool",
            clock(sh, "sh", "-c", f"cp -a '{plain}' '{copy}' && sync -f '{copy}'"))
        add(samples, f"commit of {count} files", "stoplog", clock(view.call, "commit", "-a", "-y"))
        add(samples, f"undo of {count} files", "plain tool",
            clock(sh, "sh", "-c", f"cp -a '{lower}/.' '{copy}' && sync -f '{copy}'"))
        add(samples, f"undo of {count} files", "stoplog", clock(view.call, "undo"))
    finally:
        view.close()
        shutil.rmtree(work, ignore_errors=True)


def node_memory(options, place, lower):
    """Bytes of the daemon for each node of an unchanged tree that was walked."""
    view = Stoplog(options)
    try:
        merged = view.open(lower, os.path.join(place, "view"))
        before = memory_of(view.daemon_pids())
        found = sh("find", merged, stdout=subprocess.PIPE).stdout.count(b"\n")
        return (memory_of(view.daemon_pids()) - before) / found, found
    finally:
        view.close()


def measure(options, place, samples, missing):
    why = Stoplog(options).unavailable()
    if why:
        missing.append(f"program: {why}")
        return None
    lower = os.path.join(place, "many")
    make_tree(lower, options.changed)
    try:
        for number in range(max(1, options.rounds // 2)):
            one_round(options, place, lower, options.changed, samples, missing)
            print(f"program: round {number + 1}", file=sys.stderr)
        return node_memory(options, place, lower)
    except (subprocess.CalledProcessError, OSError) as error:
        said = getattr(error, "stderr", None) or b""
        missing.append(f"program: {error} {said.decode(errors='replace').strip()}")
        return None
    finally:
        shutil.rmtree(lower, ignore_errors=True)
