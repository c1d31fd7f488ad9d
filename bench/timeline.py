# SPDX-License-Identifier: Apache-2.0
"""Marks, rollbacks and forks of a draft that holds many files, beside a mark in
an empty draft and `cp -a` of the same files; an export beside tar and zstd of
them; the replay of its journal beside `find` over as many files.

A rollback near changes what was changed since the last mark, one file of all;
one far goes to the first mark, where there was nothing, and back again. What
the plain tool takes is measured between them, so that both meet the same load.
"""
import os
import shutil
import signal
import subprocess
import sys
import time

from bed import fill_tree, sh
from views import Stoplog


def clock(function, *args, **named):
    begin = time.monotonic()
    function(*args, **named)
    return time.monotonic() - begin


class Timeline:
    def __init__(self, options, place, samples):
        self.options, self.samples = options, samples
        self.work = os.path.join(place, "timeline")
        self.plain = os.path.join(self.work, "plain")
        self.count = options.held
        self.view = Stoplog(options)

    def add(self, what, name, took):
        key = ("timeline", f"{what}, {self.count} files")
        self.samples.setdefault(key, {}).setdefault(name, []).append(took)

    def copy(self):
        copied = os.path.join(self.work, "copied")
        took = clock(sh, "cp", "-a", self.plain, copied)
        shutil.rmtree(copied)
        return took

    def against_copy(self, what, *argv):
        self.add(what, "plain tool", self.copy())
        self.add(what, "stoplog", clock(self.view.call, *argv))

    def run(self, round_number):
        os.mkdir(self.work)
        lower = os.path.join(self.work, "w")
        os.mkdir(lower)
        try:
            fill_tree(self.plain, self.count)
            merged = self.view.open(lower, os.path.join(self.work, "view"))
            self.measure(merged)
            print(f"timeline: round {round_number}", file=sys.stderr)
        finally:
            self.view.close()
            shutil.rmtree(self.work, ignore_errors=True)

    def measure(self, merged):
        call = self.view.call
        self.add("mark", "plain tool", clock(call, "snapshot", "-m", "empty"))
        sh("cp", "-a", f"{self.plain}/.", merged)
        call("snapshot", "-m", "warm")
        self.add("mark", "stoplog", clock(call, "snapshot", "-m", "all"))
        with open(os.path.join(merged, "one more"), "w", encoding="ascii") as f:
            f.write("text\n")
        self.against_copy("rollback, one file", "rollback", "all")
        self.against_copy("rollback, all of them away", "rollback", "empty")
        self.against_copy("rollback, all of them back", "rollback", "all")
        self.against_copy("fork", "fork", "other")
        self.against_copy("fork of the first mark", "fork", "early", "empty")
        packed, bundle = os.path.join(self.work, "x"), os.path.join(self.work, "y")
        pack = f"tar -cf - -C '{self.plain}' . | zstd -q -3 -T2 -o '{packed}'"
        self.add("export", "plain tool", clock(sh, "sh", "-c", pack))
        self.add("export", "stoplog", clock(call, "export", bundle))
        # Without its daemon a draft is read from its journal, all of it.
        call("unmount")
        for pid in self.view.daemon_pids():
            os.kill(pid, signal.SIGKILL)
        while self.view.daemon_pids():
            time.sleep(0.01)
        one = os.path.relpath(next(os.path.join(d, f[0]) for d, _, f in os.walk(self.plain) if f),
                              self.plain)
        self.add("replay", "plain tool", clock(sh, "find", self.plain, "-newermt", "2099-01-01"))
        self.add("replay", "stoplog", clock(call, "cat", one))


def measure(options, place, samples, missing):
    why = Stoplog(options).unavailable()
    if why:
        missing.append(f"timeline: {why}")
        return
    for number in range(max(1, options.rounds // 2)):
        try:
            Timeline(options, place, samples).run(number + 1)
        except (subprocess.CalledProcessError, OSError) as error:
            said = getattr(error, "stderr", None) or b""
            missing.append(f"timeline: {error} {said.decode(errors='replace').strip()}")
            return
