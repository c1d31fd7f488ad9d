# SPDX-License-Identifier: Apache-2.0
"""How many requests the kernel sends to stoplog for a workload. Counts repeat
where times do not; tests/fs/cost.py asserts those of single operations.

The mount is served by the tests' own daemon, which counts. What a view does by
itself after mounting (the walk) is no part of it.
"""
import os
import shutil
import subprocess

import workloads
from bed import sh


class Counted:
    def __init__(self, fsd, lower, at, switches=()):
        self.at = at
        for part in ("draft", "m"):
            os.makedirs(os.path.join(at, part))
        self.process = subprocess.Popen(
            [fsd, "--base", lower, "--draft", f"{at}/draft", "--mount", f"{at}/m", *switches],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        if self.process.stdout.readline() != "ready\n":
            raise OSError(f"{fsd} does not serve {at}")

    def ask(self, word):
        self.process.stdin.write(word + "\n")
        self.process.stdin.flush()
        return self.process.stdout.readline()

    def counts(self):
        pairs = (word.split("=") for word in self.ask("counts").split())
        return {k: int(v) for k, v in pairs if "FORGET" not in k}

    def spent(self, function):
        before = self.counts()
        function()
        return {k: n - before.get(k, 0) for k, n in self.counts().items()
                if n != before.get(k, 0)}

    def close(self):
        self.ask("quit")
        self.process.wait()
        sh("umount", "-l", f"{self.at}/m", check=False)
        shutil.rmtree(self.at, ignore_errors=True)


def operations(options, view):
    """Of single operations, a thousand of each."""
    place = os.path.join(view.at, "m", "requests")
    os.mkdir(place)
    # As in any mount in use: once OPEN was refused the kernel sends no RELEASE.
    with open(os.path.join(place, "known"), "w", encoding="utf-8") as f:
        f.write("x")
    with open(os.path.join(place, "known"), encoding="utf-8") as f:
        f.read()
    for what in ("create", "stat", "read", "read", "read", "append", "unlink"):
        yield what, 1000, view.spent(lambda w=what: sh(options.ops, w, place, 1000))


def measure(options, place, lowers, missing):
    """Rows: workload, how often, {request: count}."""
    if not os.access(options.fsd, os.X_OK):
        missing.append(f"requests: {options.fsd} is not built")
        return []
    rows = []
    for number, workload in enumerate([None] + workloads.ALL):
        if workload and (workload.name.endswith("settled") or
                         (workload.needs and shutil.which(workload.needs) is None)):
            continue
        lower = lowers[workload.tree if workload else "source"]
        view = Counted(options.fsd, lower, os.path.join(place, f"requests-{number}"))
        try:
            if workload is None:
                rows += [(f"{what} of one file", many, spent)
                         for what, many, spent in operations(options, view)]
            elif workload.run is not workloads.small_files:
                directory = os.path.join(view.at, "m")
                rows.append((workload.name, 1,
                             view.spent(lambda d=directory, w=workload: w.run(d, options))))
        finally:
            view.close()
    return rows


def table(rows):
    lines = [f"{'requests':36}{'each':>12}  of which"]
    for name, many, spent in rows:
        each = sum(spent.values()) / many
        parts = sorted(spent.items(), key=lambda kv: -kv[1])[:5]
        said = ", ".join(f"{k} {n / many:g}" for k, n in parts if n / many >= 0.01)
        lines.append(f"{name[:35]:36}{each:>12.6g}  {said}")
    return "\n".join(lines)
