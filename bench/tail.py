# SPDX-License-Identifier: Apache-2.0
"""How long a small operation takes while something large goes on in the same
view: a sequential write, marks, a status that hashes, gc. Median, 99th
percentile and maximum, beside the same operation alone; natively only what
exists there.

    scripts/bench --tail [--quick]

On two processors a third program takes time from all: what that alone does is
seen beside a busy loop.
"""
import os
import subprocess
import threading

import views
from bed import make_tree, sh

ALONE = "alone"


class Beside:
    """Does `work` again and again, from `with` on to its end."""

    def __init__(self, work):
        self.work, self.stop = work, threading.Event()
        self.thread = threading.Thread(target=self.loop)
        self.rounds, self.error = 0, None

    def loop(self):
        try:
            while not self.stop.is_set():
                self.work()
                self.rounds += 1
        except (OSError, subprocess.CalledProcessError) as error:
            self.error = error

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.stop.set()
        self.thread.join()
        if self.error:
            raise OSError(f"beside the measurement: {self.error}")


def write_large(at, mib):
    sh("dd", "if=/dev/zero", f"of={at}/large", "bs=1M", f"count={mib}")


def burn():
    """A program that takes a whole processor, for half a second."""
    sh("timeout", "0.5", "sh", "-c", "while :; do :; done", check=False)


def ops(options, what, at, count):
    """Median, 99th percentile and maximum, in seconds."""
    out = sh(options.ops, what, at, count, stdout=subprocess.PIPE, text=True).stdout
    return [int(n) / 1e9 for n in out.split()[2:]]


def one(view, at, name, work, options, samples, number):
    """Create, stat and unlink, once alone or beside `work`."""
    place = os.path.join(at, f"small-{number}-{name.replace(' ', '-')}")
    os.mkdir(place)

    def measured():
        for what in ("create", "stat", "unlink"):
            for part, took in zip(("median", "p99", "max"),
                                  ops(options, what, place, options.ops_count)):
                samples.setdefault((f"{view}, {what}", part), {}).setdefault(name, []).append(took)
    if work is None:
        measured()
    else:
        with Beside(work):
            measured()


def measure(options, place, samples, missing):
    lower = make_tree(os.path.join(place, "source"), options.files)
    native = views.Native(options)
    ours = views.Stoplog(options)
    why = ours.unavailable()
    if why:
        missing.append(f"stoplog: {why}")
        return
    opened = []
    try:
        plain = native.open(lower, os.path.join(place, "native"))
        opened.append(native)
        held = ours.open(lower, os.path.join(place, "stoplog"))
        opened.append(ours)
        write_large(held, options.big_mib)  # something for gc, and to be hashed

        def gc():
            write_large(held, options.big_mib)
            ours.call("gc")

        def status():
            with open(os.path.join(held, "large"), "r+b") as f:
                f.write(os.urandom(64))
            ours.call("status")
        todo = [("native", plain, ALONE, None), ("stoplog", held, ALONE, None),
                ("native", plain, "a busy loop", burn), ("stoplog", held, "a busy loop", burn),
                ("native", plain, "a large write", lambda: write_large(plain, options.big_mib)),
                ("stoplog", held, "a large write", lambda: write_large(held, options.big_mib)),
                ("stoplog", held, "marks", lambda: ours.call("snapshot")),
                ("stoplog", held, "a status that hashes", status),
                ("stoplog", held, "rewriting and gc", gc)]
        for number in range(options.rounds):
            for view, at, name, work in todo:
                one(view, at, name, work, options, samples, number)
    finally:
        for view in opened:
            view.close()
