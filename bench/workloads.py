# SPDX-License-Identifier: Apache-2.0
"""What is measured on a view: a list of Workload records, each a name, the tree
that it wants, and a function that gets the directory and returns samples in
seconds, {part: seconds}. "first" is the first time after mounting, with the
lower tree in the page cache; "settled" the same after a moment, in which stoplog
walks the mount by itself; "warm" the second time or later.
"""
import dataclasses
import os
import shutil
import subprocess
import time
from typing import Callable

from bed import sh

ENV = dict(os.environ, GIT_CONFIG_GLOBAL="/dev/null", GIT_CONFIG_NOSYSTEM="1",
           GIT_OPTIONAL_LOCKS="0", LC_ALL="C",
           # A view may show the owner as somebody else, which git distrusts.
           GIT_CONFIG_COUNT="1", GIT_CONFIG_KEY_0="safe.directory", GIT_CONFIG_VALUE_0="*")


@dataclasses.dataclass(frozen=True)
class Workload:
    name: str
    run: Callable  # (directory, options) -> {part: seconds}
    tree: str = "source"  # source, project, big, empty
    needs: str = ""       # a program
    reads: bool = True    # what the tree has; False: only what it made itself


def timed(*argv, **options):
    options.setdefault("env", ENV)
    begin = time.monotonic()
    sh(*argv, **options)
    return time.monotonic() - begin


def twice(*argv, **options):
    return {"first": timed(*argv, **options),
            "warm": min(timed(*argv, **options) for _ in range(2))}


def git_status(at, options):
    # A copy or another device has other inode numbers than the index says.
    sh("git", "-C", at, "-c", "core.checkStat=minimal", "status", env=ENV)
    return {"warm": min(timed("git", "-C", at, "status", "--porcelain") for _ in range(3))}


def git_status_first(at, options):
    return {"first": timed("git", "-C", at, "-c", "core.checkStat=minimal", "status",
                           "--porcelain")}


def settle(at):
    """Until what a view does by itself after mounting is done."""
    time.sleep(0.7)
    while subprocess.run(["pgrep", "-f", f"daemon --warm {at}"], capture_output=True,
                         check=False).returncode == 0:
        time.sleep(0.05)


def git_status_settled(at, options):
    settle(at)
    return {"settled": git_status_first(at, options)["first"]}


def find_settled(at, options):
    settle(at)
    return {"settled": timed("find", at, "-newermt", "2099-01-01")}


def grep_settled(at, options):
    settle(at)
    return {"settled": timed("grep", "-r", "no such text anywhere", at, check=False)}


def find_stat(at, options):
    return twice("find", at, "-newermt", "2099-01-01")


def grep(at, options):
    return twice("grep", "-r", "no such text anywhere", at, check=False)


def ripgrep(at, options):
    return twice("rg", "-uu", "no such text anywhere", at, check=False)


def ops(options, what, at, count):
    out = sh(options.ops, what, at, count, stdout=subprocess.PIPE, text=True).stdout
    total, _, median, p99, _ = (int(n) / 1e9 for n in out.split())
    return total / count, median, p99


def small_files(at, options):
    place = os.path.join(at, "bench-small")
    os.mkdir(place)
    samples = {}
    count = options.ops_count
    mean, _, p99 = ops(options, "create", place, count)
    samples["create 4K"], samples["create 4K p99"] = mean, p99
    ops(options, "read", place, count)
    ops(options, "read", place, count)
    samples["open+read+close warm"] = ops(options, "read", place, count)[0]
    samples["stat warm"] = ops(options, "stat", place, count)[0]
    for part, what in (("append 4K", "append"), ("unlink", "unlink")):
        mean, _, p99 = ops(options, what, place, count)
        samples[part], samples[part + " p99"] = mean, p99
    return samples


def unpack(at, options):
    place = os.path.join(at, "bench-unpack")
    os.mkdir(place)
    return {"tar x": timed("tar", "xf", options.tarball, "-C", place),
            "rm -rf fresh": timed("rm", "-rf", place)}


def remove_lower(at, options):
    return {"rm -rf lower": timed("rm", "-rf", *(os.path.join(at, n) for n in os.listdir(at)
                                                if n != ".git"))}


def big_write(at, options):
    place = os.path.join(at, "bench-big")
    took = timed("dd", "if=/dev/zero", f"of={place}", "bs=1M", f"count={options.big_mib}",
                 "conv=notrunc")
    os.unlink(place)
    return {f"write {options.big_mib} MiB": took}


def build(at, options):
    place = os.path.join(at, "bench-cmake")
    configured = timed("cmake", "-S", at, "-B", place, "-G", "Unix Makefiles")
    made = timed("make", "-C", place, "-j2", "-s")
    return {"cmake": configured, "make -j2": made, "both": configured + made}


def append_byte(at, options):
    begin = time.monotonic()
    with open(os.path.join(at, "big"), "ab", buffering=0) as f:
        f.write(b"x")
    return {f"1 byte to {options.big_lower_mib} MiB": time.monotonic() - begin}


NPM_PACKAGES = ["webpack@5", "eslint@8", "jest@29", "typescript@5", "express@4"]


def npm_project(place):
    """A project with a lock file and a cache that has all of it: what is measured
    fetches nothing. None, and why, when the registry cannot be reached."""
    project, cache = os.path.join(place, "npm-project"), os.path.join(place, "npm-cache")
    os.makedirs(project)
    with open(os.path.join(project, "package.json"), "w", encoding="ascii") as f:
        f.write('{"name": "bench", "version": "1.0.0"}\n')
    made = sh("npm", "install", "--no-audit", "--no-fund", "--ignore-scripts", "--cache", cache,
              *NPM_PACKAGES, cwd=project, check=False)
    if made.returncode == 0:
        # Once as it is measured: where lock files carry no addresses, what `ci`
        # asks the registry is not what `install` did.
        made = sh("npm", "ci", "--no-audit", "--no-fund", "--ignore-scripts", "--cache", cache,
                  cwd=project, check=False)
    if made.returncode != 0:
        return None, made.stderr.decode(errors="replace").strip().splitlines()[-1:]
    shutil.rmtree(os.path.join(project, "node_modules"))
    return (project, cache), None


def npm(at, options):
    project, cache = options.npm
    place = os.path.join(at, "npm")
    shutil.copytree(project, place)
    return {"npm ci": timed("npm", "ci", "--offline", "--no-audit", "--no-fund",
                            "--ignore-scripts", "--cache", cache, cwd=place)}


ALL = [
    Workload("git status, first", git_status_first),
    Workload("git status, settled", git_status_settled),
    Workload("git status", git_status),
    Workload("find + stat", find_stat),
    Workload("find + stat, settled", find_settled),
    Workload("grep -r", grep),
    Workload("grep -r, settled", grep_settled),
    Workload("rg", ripgrep, needs="rg"),
    Workload("small files", small_files, reads=False),
    Workload("unpack", unpack, reads=False),
    Workload("remove", remove_lower),
    Workload("sequential write", big_write, reads=False),
    Workload("cmake + make", build, tree="project", needs="cmake"),
    Workload("large lower file", append_byte, tree="big"),
]
