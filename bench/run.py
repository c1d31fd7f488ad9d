#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures stoplog beside native, kernel overlayfs, fuse-overlayfs and
bubblewrap, interleaved: in each round every view does each workload once, so
that a slow minute of the machine is a slow minute for all. Only ratios are to
be trusted. Prints a table and writes JSON and an SVG plot.

What cannot run here is said at the end, never left out silently.
"""
import argparse
import json
import os
import shutil
import subprocess
import sys
import time

import growth
import launch
import program
import report
import requests
import switches
import tail
import timeline
import views
import workloads
from bed import bed, make_project, make_tree, sh


KINDS = ("ext4", "xfs", "btrfs", "tmpfs", "disk")


def kinds(text):
    for kind in text.split(","):
        if kind not in KINDS:
            raise argparse.ArgumentTypeError(f"'{kind}' is none of {', '.join(KINDS)}")
    return text


def parse(argv):
    p = argparse.ArgumentParser(prog="scripts/bench", description=__doc__,
                                formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--quick", action="store_true", help="small trees, few rounds: five minutes")
    p.add_argument("--growth", action="store_true",
                   help="how costs grow with tree, changes, timeline and file size, instead")
    p.add_argument("--tail", action="store_true",
                   help="small operations while something large goes on, instead")
    p.add_argument("--on", default="ext4", metavar="KINDS", type=kinds,
                   help="the file system beneath, " + ", ".join(KINDS) + ": a fresh loop one, or "
                        "the machine's own disk; several with commas, one after the other")
    p.add_argument("--rounds", type=int, help="default 7, with --quick 3")
    p.add_argument("--files", type=int, help="files of the source tree; default 20000, quick 4000")
    p.add_argument("--only", metavar="TEXT", help="workloads whose name holds TEXT")
    p.add_argument("--views", metavar="NAMES", help="comma-separated; default all")
    p.add_argument("--out", metavar="STEM", help="default build/bench/FILESYSTEM")
    p.add_argument("--stoplog", default="build/stoplog", help=argparse.SUPPRESS)
    p.add_argument("--ops", default="build/bench/bench_ops", help=argparse.SUPPRESS)
    p.add_argument("--floor", default="build/bench/bench_floor", help=argparse.SUPPRESS)
    p.add_argument("--fsd", default="build/tests/fsd", help=argparse.SUPPRESS)
    p.add_argument("--commit", default="build/bench/bench_commit", help=argparse.SUPPRESS)
    o = p.parse_args(argv)
    o.rounds = o.rounds or (3 if o.quick else 7)
    o.files = o.files or (4000 if o.quick else 20000)
    o.ops_count = 500 if o.quick else 3000
    o.big_mib = 64 if o.quick else 512
    o.big_lower_mib = 256 if o.quick else 1024
    o.launches = 10 if o.quick else 50
    o.changed = 2000 if o.quick else 10000
    o.held = 20000 if o.quick else 100000
    o.stoplog, o.ops = os.path.abspath(o.stoplog), os.path.abspath(o.ops)
    o.commit, o.floor, o.fsd = (os.path.abspath(n) for n in (o.commit, o.floor, o.fsd))
    o.found = {}  # what is no time: requests, memory
    return o


def make_lowers(place, options):
    lowers = {"source": make_tree(os.path.join(place, "source"), options.files),
              "project": make_project(os.path.join(place, "project"),
                                      8 if options.quick else 24)}
    os.makedirs(os.path.join(place, "big"))
    sh("dd", "if=/dev/urandom", f"of={place}/big/big", "bs=1M", f"count={options.big_lower_mib}")
    lowers["big"] = os.path.join(place, "big")
    options.tarball = os.path.join(place, "source.tar")
    sh("tar", "cf", options.tarball, "-C", place, "--exclude=.git", "source")
    return lowers


def one(view_class, workload, lower, place, options, samples):
    """One view, one workload, once."""
    view = view_class(options)
    at = os.path.join(place, "view")
    try:
        begin = time.monotonic()
        directory = view.open(lower, at)
        os.stat(directory)
        if view_class.shows_lower and view_class is not views.Native:
            mounts = samples.setdefault(("mount", "until usable"), {})
            mounts.setdefault(view.name, []).append(time.monotonic() - begin)
        for part, took in workload.run(directory, options).items():
            samples.setdefault((workload.name, part), {}).setdefault(view.name, []).append(took)
    except (subprocess.CalledProcessError, OSError) as error:
        if hasattr(view, "last_words"):
            said = (getattr(error, "stderr", None) or b"").decode(errors="replace").strip()
            raise OSError(f"{error} {said}; its daemon said: {view.last_words()}") from error
        raise
    finally:
        view.close()


def chosen(options, missing):
    ready = []
    for view_class in views.ALL:
        if options.views and view_class.name not in options.views.split(","):
            continue
        why = view_class(options).unavailable()
        if why:
            missing.append(f"{view_class.name}: {why}")
        else:
            ready.append(view_class)
    todo = []
    for workload in workloads.ALL:
        if options.only and options.only not in workload.name:
            continue
        if workload.needs and shutil.which(workload.needs) is None:
            missing.append(f"{workload.name}: {workload.needs} is not installed")
        else:
            todo.append(workload)
    return ready, todo


def npm_workload(options, place, missing):
    """`npm ci`, where npm and its registry are to be had."""
    if options.quick and not options.only:
        missing.append("npm ci: not with --quick")
    elif not options.only or options.only in "npm":
        if shutil.which("npm") is None:
            missing.append("npm ci: npm is not installed")
            return []
        options.npm, why = workloads.npm_project(place)
        if options.npm:
            return [workloads.Workload("npm", workloads.npm, tree="project")]
        missing.append(f"npm ci: {why}")
    return []


def measure(options, place, samples, missing):
    ready, todo = chosen(options, missing)
    lowers = make_lowers(place, options)
    todo += npm_workload(options, place, missing)
    broken = set()
    for number in range(options.rounds):
        for workload in todo:
            # Another order in each round: who comes first finds cold caches.
            turn = ready[number % len(ready):] + ready[:number % len(ready)]
            for view_class in turn:
                key = (view_class.name, workload.name)
                if key in broken or (workload.reads and not view_class.shows_lower):
                    continue
                try:
                    one(view_class, workload, lowers[workload.tree], place, options, samples)
                except (subprocess.CalledProcessError, OSError) as error:
                    broken.add(key)
                    said = getattr(error, "stderr", None) or b""
                    said = said.decode(errors="replace") if isinstance(said, bytes) else said
                    missing.append(f"{workload.name} on {view_class.name}: {error} {said.strip()}")
        print(f"round {number + 1} of {options.rounds}", file=sys.stderr)
    if not options.only or options.only in "requests":
        counted = requests.measure(options, place, lowers, missing)
        options.found["requests"] = [{"of": name, "times": many, "requests": spent}
                                     for name, many, spent in counted]
        print(requests.table(counted) + "\n")
    order = [v.name for v in views.ALL]
    for key, found in samples.items():
        samples[key] = {n: found[n] for n in order if n in found}
    if not options.only or options.only in "switches":
        switches.measure(options, place, lowers["source"], samples, missing)
    if not options.only or options.only in "launch":
        launch.measure(options, place, samples, missing)
    if not options.only or options.only in "program":
        memory = program.measure(options, place, samples, missing)
        if memory:
            options.found["bytes_a_node"], options.found["nodes"] = memory
            print(f"memory: {memory[0]:.0f} bytes a node, of {memory[1]} nodes\n")
    if not options.only or options.only in "timeline":
        timeline.measure(options, place, samples, missing)


def about_this_run(options, missing):
    return {"filesystem": options.on, "kernel": os.uname().release, "cpus": os.cpu_count(),
            "rounds": options.rounds, "files": options.files, "quick": options.quick,
            "date": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()), "missing": missing,
            **options.found}


def main_growth(options):
    missing = []
    why = views.Stoplog(options).unavailable()
    if why:
        print(f"not measured: {why}")
        return 1
    with bed(options.on, size="24G") as place:
        cells = growth.measure(options, place, missing)
    os.makedirs(os.path.dirname(os.path.abspath(options.out)), exist_ok=True)
    print(growth.table(cells))
    print("\n".join(growth.save(cells, about_this_run(options, missing), options.out)))
    for line in missing:
        print(f"not measured: {line}")
    return 0 if cells else 1


def main(argv):
    given = parse(argv)
    failed = 0
    for kind in given.on.split(","):
        options = parse(argv)
        options.on = kind
        options.out = given.out or "build/bench/" + kind
        if given.out and "," in given.on:
            options.out += "-" + kind
        # What comes after is still measured where one cannot be made here.
        try:
            failed |= (main_growth if options.growth else main_files)(options)
        except subprocess.CalledProcessError as error:
            said = (error.stderr or b"").decode(errors="replace").strip()
            print(f"not measured: {kind}: {error} {said}")
            failed = 1
    return failed


def main_files(options):
    samples, missing = {}, []
    begin = time.time()
    with bed(options.on) as place:
        (tail.measure if options.tail else measure)(options, place, samples, missing)
    apart = ("launch", "mount", "program", "switches", "timeline")
    groups = {"tail" if options.tail else "files":
              {k: v for k, v in samples.items() if k[0] not in apart},
              "mount": {k: v for k, v in samples.items() if k[0] == "mount"},
              "switches": {k: v for k, v in samples.items() if k[0] == "switches"},
              "program": {k: v for k, v in samples.items() if k[0] == "program"},
              "timeline": {k: v for k, v in samples.items() if k[0] == "timeline"},
              "launch": {k: v for k, v in samples.items() if k[0] == "launch"}}
    os.makedirs(os.path.dirname(os.path.abspath(options.out)), exist_ok=True)
    about = about_this_run(options, missing)
    for group, found in groups.items():
        if found:
            print(report.table(found) + "\n")
            stem = options.out + ("" if group == "files" else "-" + group)
            report.save(found, about, stem, f"{group} on {options.on}")
            print(f"{stem}.json, {stem}.svg\n")
    for line in missing:
        print(f"not measured: {line}")
    print(f"{time.time() - begin:.0f} s, {options.on}, kernel {os.uname().release}, "
          f"{os.cpu_count()} processors")
    if options.found:
        with open(options.out + "-counts.json", "w", encoding="utf-8") as f:
            json.dump({"version": 1, "about": about}, f, indent=1)
    return 0 if samples or options.found else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
