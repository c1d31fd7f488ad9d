# SPDX-License-Identifier: Apache-2.0
"""The program itself: change set and patch, commit and undo of many files, each
beside the plain tool that does the nearest thing; and the daemon's memory for
each node that the kernel holds. The timeline is in timeline.py.

Adds to `samples` as the workloads do; the first column is the plain tool.
"""
import json
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
    """Changes a line in the middle of `count` files beneath `at`, inserts one at
    a third and appends one."""
    done = 0
    for top, directories, files in os.walk(at):
        directories[:] = sorted(d for d in directories if d != ".git")
        for name in sorted(files):
            with open(os.path.join(top, name), "r+", encoding="ascii") as f:
                lines = f.read().split("\n")
                lines[len(lines) // 2] += " changed"
                lines.insert(len(lines) // 3, "one line inserted")
                lines.append("one more line")
                f.seek(0)
                f.write("\n".join(lines))
                f.truncate()
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


def side_by_side(samples, part, plain, ours, times):
    """The two after each other, `times` times, so that both meet the same load."""
    for _ in range(times):
        add(samples, part, "plain tool", clock(*plain))
        add(samples, part, "stoplog", clock(*ours))


def quietly(*argv, cwd=None):
    sh(*argv, check=False, cwd=cwd)


def commit_until_durable(view, trace):
    """The whole command, and how long after its start the renames were on the
    disk: the second of its syncfs calls is over. Nothing else is traced, so that
    only these three are slower."""
    strace = ("strace", "-f", "--seccomp-bpf", "-qq", "-ttt", "-T", "-o", trace,
              "-e", "trace=execve,syncfs")
    took = clock(sh, *strace, view.program, "--workspace", view.lower, "commit", "-a", "-y",
                 env=view.env)
    with open(trace, encoding="ascii", errors="replace") as f:
        calls = [line.split() for line in f if "<" in line]
    begin = float(next(c for c in calls if c[2].startswith("execve"))[1])
    syncs = [c for c in calls if c[2].startswith("syncfs")]
    if len(syncs) != 3:
        raise OSError(f"a commit made {len(syncs)} calls of syncfs, not 3")
    return took, float(syncs[1][1]) + float(syncs[1][-1].strip("<>")) - begin


def compare_diffs(options, view, work, lower, plain, count, samples):
    """Change set and patch beside `git diff --no-index` of the same two trees."""
    before, after = os.path.join(work, "before"), os.path.join(work, "after")
    for source, target in ((lower, before), (plain, after)):
        sh("cp", "-a", source, target)
        shutil.rmtree(os.path.join(target, ".git"))
    git = (quietly, "git", "diff", "--no-index", before, after)
    names = (quietly, "git", "diff", "--no-index", "--name-status", before, after)
    for part, plain_tool, argv in (
            (f"patch of {count} files", git, ["diff", "--no-pager"]),
            (f"patch of {count} files, with risks and colours", git,
             ["--color", "always", "diff", "--no-pager"]),
            (f"change set of {count} files, with digest and risks", git, ["status"]),
            (f"names of {count} changed files", names, ["diff", "--name-status"])):
        side_by_side(samples, part, plain_tool, (view.call, *argv), 3)
    shutil.rmtree(before)
    shutil.rmtree(after)


def small_draft(options, place, samples):
    """What a person waits for: `version`, and `status` of a small draft."""
    lower = os.path.join(place, "small")
    make_tree(lower, 60)
    view = Stoplog(options)
    try:
        merged = view.open(lower, os.path.join(place, "small-view"))
        edit(merged, 5)
        side_by_side(samples, "version", (quietly, "git", "--version"),
                     (quietly, options.stoplog, "version"), options.launches)
        side_by_side(samples, "status of a small draft", (git_status, lower),
                     (view.call, "status"), options.launches)
    finally:
        view.close()
        shutil.rmtree(lower, ignore_errors=True)


def git_status(at):
    quietly("git", "status", "--short", cwd=at)


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
        compare_diffs(options, view, work, lower, plain, count, samples)
        copy = os.path.join(work, "copy")
        add(samples, f"commit of {count} files", "plain tool",
            clock(sh, "sh", "-c", f"cp -a '{plain}' '{copy}' && sync -f '{copy}'"))
        if shutil.which("strace"):
            took, durable = commit_until_durable(view, os.path.join(work, "trace"))
            durably = f"commit of {count} files, until durable"
            add(samples, durably, "plain tool", samples["program", f"commit of {count} files"]["plain tool"][-1])
            add(samples, durably, "stoplog", durable)
        else:
            missing.append("program: commit until durable: needs strace")
            took = clock(view.call, "commit", "-a", "-y")
        add(samples, f"commit of {count} files", "stoplog", took)
        add(samples, f"undo of {count} files", "plain tool",
            clock(sh, "sh", "-c", f"cp -a '{lower}/.' '{copy}' && sync -f '{copy}'"))
        add(samples, f"undo of {count} files", "stoplog", clock(view.call, "undo"))
    finally:
        view.close()
        shutil.rmtree(work, ignore_errors=True)


def commit_alone(options, place, count, samples, missing):
    """The commit itself, without the program around it, beside `cp -a` and sync of
    the same files: until durable, until the stage is clean, and the switch, in
    which readers may see a mixture."""
    if not os.access(options.commit, os.X_OK):
        missing.append(f"commit: {options.commit} is not built")
        return
    for kind in ("replace", "create"):
        out = sh(options.commit, place, str(count), kind, "1",
                 stdout=subprocess.PIPE, text=True).stdout
        found = json.loads(out)
        for part, key in (("until durable", "durable_ms"), ("until clean", "clean_ms"),
                          ("the switch", "switch_ms")):
            name = f"{kind} {count} files, {part}"
            add(samples, name, "plain tool", found["copy_sync_ms"] / 1e3)
            add(samples, name, "stoplog", found[key] / 1e3)


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
        small_draft(options, place, samples)
        for number in range(max(1, options.rounds // 2)):
            one_round(options, place, lower, options.changed, samples, missing)
            commit_alone(options, place, options.changed, samples, missing)
            print(f"program: round {number + 1}", file=sys.stderr)
        return node_memory(options, place, lower)
    except (subprocess.CalledProcessError, OSError) as error:
        said = getattr(error, "stderr", None) or b""
        missing.append(f"program: {error} {said.decode(errors='replace').strip()}")
        return None
    finally:
        shutil.rmtree(lower, ignore_errors=True)
