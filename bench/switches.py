# SPDX-License-Identifier: Apache-2.0
"""What each trick of the mount is worth: the same operations with one of them
switched off, by turns. The mount is served by the tests' own daemon, whose
options are the switches. Polling, the requests that are avoided, and the number
of readers; the walk after mounting is seen in "settled" beside "first" of the
other workloads, and the loader in "version".

The first column is the mount as it is; above 1 is slower without the trick.
"""
import os
import subprocess

from bed import sh
from requests import Counted
from workloads import ENV, ops, timed

AS_IT_IS = "as it is"


def variants():
    return {AS_IT_IS: [],
            "no polling": ["--no-poll"],
            "opens answered": ["--answer-opens"],
            "a reader a processor": ["--readers", str(max(2, os.cpu_count() or 1))]}


def four_at_once(options, place, count):
    """Four programs that make files, each in a directory of its own."""
    for n in range(4):
        os.mkdir(os.path.join(place, f"p{n}"))
    script = " ".join(f"'{options.ops}' create '{place}/p{n}' {count} &" for n in range(4))
    return timed("sh", "-c", script + " wait")


def one(options, view, samples, name):
    def add(part, took):
        samples.setdefault(("switches", part), {}).setdefault(name, []).append(took)
    top = os.path.join(view.at, "m")
    place = os.path.join(top, "switches")
    os.mkdir(place)
    count = options.ops_count
    add("create 4K", ops(options, "create", place, count)[0])
    for _ in range(2):
        ops(options, "read", place, count)
    add("open+read+close warm", ops(options, "read", place, count)[0])
    add("append 4K", ops(options, "append", place, count)[0])
    add("unlink", ops(options, "unlink", place, count)[0])
    add("four programs create", four_at_once(options, place, count))
    for _ in range(2):
        sh("grep", "-r", "no such text anywhere", top, check=False, env=ENV)
    add("grep -r warm", timed("grep", "-r", "no such text anywhere", top, check=False))


def measure(options, place, lower, samples, missing):
    if not os.access(options.fsd, os.X_OK):
        missing.append(f"switches: {options.fsd} is not built")
        return
    for number in range(options.rounds):
        turn = list(variants().items())
        turn = turn[number % len(turn):] + turn[:number % len(turn)]
        for name, switches in turn:
            view = Counted(options.fsd, lower, os.path.join(place, "switched"), switches)
            try:
                one(options, view, samples, name)
            except (subprocess.CalledProcessError, OSError) as error:
                missing.append(f"switches: {name}: {error}")
                return
            finally:
                view.close()
    order = list(variants())
    for key in [k for k in samples if k[0] == "switches"]:
        samples[key] = {n: samples[key][n] for n in order if n in samples[key]}
