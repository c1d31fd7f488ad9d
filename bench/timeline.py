# SPDX-License-Identifier: Apache-2.0
"""Marks, rollbacks and forks of a draft that holds many files, beside a mark in
an empty draft and `cp -a` of the same files; an export beside tar and zstd of
them; the replay of a journal beside `find` over about as many files as that has
records (a new file has three to five).

A rollback near changes what was changed since the last mark, one file of all;
one far goes to the first mark, where there was nothing, and back again. What
the plain tool takes is measured between them, so that both meet the same load.
"""
import os
import shutil
import signal
import struct
import subprocess
import sys
import time

from bed import fill_tree, sh
from views import Stoplog


def clock(function, *args, **named):
    begin = time.monotonic()
    function(*args, **named)
    return time.monotonic() - begin


def count_records(state):
    """In the journals of all drafts beneath (docs/FORMAT.md, frames)."""
    count = 0
    for top, _, names in os.walk(state):
        for name in names if os.path.basename(top) == "journal" else []:
            if name == "newest":  # a link that names one
                continue
            with open(os.path.join(top, name), "rb") as journal:
                data, at = journal.read(), 0
            while data[at:at + 4] == b"SLg1":
                at += 32 + struct.unpack_from("=I", data, at + 4)[0]
                count += 1
    return count


def end_daemons(view):
    """Without its daemon a draft is read from its journal, all of it."""
    view.call("unmount")
    for pid in view.daemon_pids():
        os.kill(pid, signal.SIGKILL)
    while view.daemon_pids():
        time.sleep(0.01)


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
            self.replay(os.path.join(self.work, "w2"))
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

    def replay(self, lower):
        """A draft of its own, with a quarter of the files."""
        view, some = Stoplog(self.options), os.path.join(self.work, "some")
        os.mkdir(lower)
        fill_tree(some, self.count // 4)
        try:
            merged = view.open(lower, os.path.join(self.work, "second"))
            sh("cp", "-a", f"{some}/.", merged)
            end_daemons(view)
            records = count_records(view.env["XDG_STATE_HOME"])
            what = f"replay of {records // 1000},000 records, find of"
            one = os.path.relpath(
                next(os.path.join(d, f[0]) for d, _, f in os.walk(some) if f), some)
            self.add(what, "plain tool", clock(sh, "find", self.plain, "-newermt", "2099-01-01"))
            self.add(what, "stoplog", clock(view.call, "cat", one))
        finally:
            view.close()


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
