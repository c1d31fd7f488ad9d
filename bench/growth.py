# SPDX-License-Identifier: Apache-2.0
"""How the cost of one thing grows with the size of another: the tree beneath,
what the draft holds, the length of its timeline, the size of a file.

    scripts/bench --growth [--quick]

Prints a table (a row for each operation, a column for each size) and writes
JSON and one SVG plot for each axis, logarithmic both ways: a level line is a
cost that does not grow. The minimum of a few tries is taken; only the shape of
a line is to be trusted.
"""
import contextlib
import json
import math
import os
import shutil
import signal
import sys
import time

import report
from bed import sh
from views import Stoplog

COLOURS = ["#4477aa", "#ee9944", "#228833", "#aa3377", "#66ccee", "#777777"]


def clock(function, *args, tries=3):
    """The shortest of a few tries; what can be done once only says tries=1."""
    best = math.inf
    for _ in range(tries):
        begin = time.monotonic()
        function(*args)
        best = min(best, time.monotonic() - begin)
    return best


def make_files(top, count):
    """`count` small files, a hundred a directory."""
    for n in range(count):
        directory = os.path.join(top, f"d{n // 10000:03}", f"e{n // 100 % 100:02}")
        if n % 100 == 0:
            os.makedirs(directory, exist_ok=True)
        with open(os.path.join(directory, f"f{n}"), "w", encoding="ascii") as f:
            f.write(f"file {n}\n")


def end_daemons(view, how):
    for pid in view.daemon_pids():
        with contextlib.suppress(ProcessLookupError):  # gone by itself
            os.kill(pid, how)
    while view.daemon_pids():
        time.sleep(0.01)


class Growth:
    def __init__(self, options, place):
        self.options, self.place = options, place
        self.cells = {}  # (axis, operation) -> {size: seconds}

    def note(self, axis, operation, size, took):
        self.cells.setdefault((axis, operation), {})[size] = took

    def draft(self, fill):
        """A fresh workspace that `fill` made, and a view of it."""
        lower = os.path.join(self.place, "lower")
        os.mkdir(lower)
        fill(lower)
        os.sync()  # else a commit's syncfs pays for what was made here
        return Stoplog(self.options), lower

    def closed(self, view):
        view.call("unmount", check=False)
        end_daemons(view, signal.SIGTERM)
        view.close()
        shutil.rmtree(os.path.join(self.place, "lower"))

    def tree(self, size):
        view, lower = self.draft(lambda top: make_files(top, size))
        try:
            begin = time.monotonic()
            merged = view.open(lower, os.path.join(self.place, "view"))
            os.stat(merged)
            self.note("files in the tree", "mount", size, time.monotonic() - begin)
            for n in range(10):
                with open(f"{merged}/d000/e00/f{n}", "a", encoding="ascii") as f:
                    f.write("more\n")
            self.note("files in the tree", "status of 10 changes", size, clock(view.call, "status"))
            self.note("files in the tree", "mark", size, clock(view.call, "snapshot"))
            os.rename(f"{merged}/d000", f"{merged}/moved")
            self.note("files in the tree", "status with its directory moved", size,
                      clock(view.call, "status"))
            os.rename(f"{merged}/moved", f"{merged}/d000")
            self.note("files in the tree", "commit of 10 changes", size,
                      clock(view.call, "commit", "-a", "-y", tries=1))
        finally:
            self.closed(view)

    def changes(self, size):
        view, lower = self.draft(lambda top: None)
        try:
            merged = view.open(lower, os.path.join(self.place, "view"))
            axis = "changed files"
            self.note(axis, "create, each", size, clock(make_files, merged, size, tries=1) / size)
            for name, argv in (("status, each", ["status"]), ("patch, each", ["diff"])):
                self.note(axis, name, size, clock(view.call, *argv) / size)
            self.note(axis, "mark", size, clock(view.call, "snapshot"))
            self.note(axis, "fork, each", size, clock(view.call, "fork", "other", tries=1) / size)
            end_daemons(view, signal.SIGKILL)  # the next command replays
            self.note(axis, "replay, each", size, clock(view.call, "mount", merged, tries=1) / size)
            self.note(axis, "commit, each", size,
                      clock(view.call, "commit", "-a", "-y", tries=1) / size)
        finally:
            self.closed(view)

    def timeline(self, size):
        view, lower = self.draft(lambda top: make_files(top, 100))
        try:
            view.lower = lower
            view.prepare(os.path.join(self.place, "view"))
            run = ("run", "--quiet", "--", "sh", "-c", "echo x >>log")
            for _ in range(size - 3):
                view.call(*run)
            axis = "commands in the timeline"
            self.note(axis, "one more command", size, clock(view.call, *run))
            self.note(axis, "status", size, clock(view.call, "status"))
            self.note(axis, "log", size, clock(view.call, "log"))
            end_daemons(view, signal.SIGKILL)  # the next command replays
            self.note(axis, "command after a kill", size, clock(view.call, *run, tries=1))
            self.note(axis, "rollback to the first", size,
                      clock(view.call, "rollback", "@1", tries=1))
        finally:
            self.closed(view)

    def file(self, size):
        def fill(top):
            with open(os.path.join(top, "large"), "wb") as f:
                f.truncate(size)
        view, lower = self.draft(fill)
        try:
            merged = view.open(lower, os.path.join(self.place, "view"))
            axis, path = "bytes of a sparse file", os.path.join(merged, "large")

            def append():
                with open(path, "ab", buffering=0) as f:
                    f.write(b"x")

            def read():
                with open(path, "rb", buffering=0) as f:
                    f.seek(-(1 << 20), os.SEEK_END)
                    f.read(1 << 20)
            self.note(axis, "append one byte", size, clock(append, tries=1))
            self.note(axis, "append another", size, clock(append))
            self.note(axis, "read the last megabyte", size, clock(read))
            self.note(axis, "mark", size, clock(view.call, "snapshot"))
            self.note(axis, "status", size, clock(view.call, "status", tries=1))
        finally:
            self.closed(view)


def table(cells):
    lines = []
    for axis in dict.fromkeys(a for a, _ in cells):
        rows = {o: v for (a, o), v in cells.items() if a == axis}
        sizes = sorted({s for v in rows.values() for s in v})
        lines.append(f"{axis:36}" + "".join(f"{s:>16,}" for s in sizes))
        for operation, values in rows.items():
            lines.append(f"  {operation:34}" + "".join(
                f"{report.seconds(values[s]) if s in values else '–':>16}" for s in sizes))
        lines.append("")
    return "\n".join(lines)


def svg(axis, rows):
    """Lines, logarithmic both ways."""
    left, top, width, height = 70, 40, 420, 260
    sizes = sorted({s for v in rows.values() for s in v})
    times = [t for v in rows.values() for t in v.values()]
    x0, x1 = math.log10(sizes[0]), max(math.log10(sizes[-1]), math.log10(sizes[0]) + 1)
    y0, y1 = math.floor(math.log10(min(times))), math.ceil(math.log10(max(times)))
    y1 = max(y1, y0 + 1)

    def x(size):
        return left + (math.log10(size) - x0) / (x1 - x0) * width

    def y(took):
        return top + height - (math.log10(took) - y0) / (y1 - y0) * height

    out = []
    for power in range(y0, y1 + 1):
        at = y(10.0 ** power)
        out.append(f'<line x1="{left}" x2="{left + width}" y1="{at:.1f}" y2="{at:.1f}" stroke="#ddd"/>'
                   f'<text x="{left - 6}" y="{at + 4:.1f}" text-anchor="end">'
                   f'{report.seconds(10.0 ** power)}</text>')
    for size in sizes:
        out.append(f'<text x="{x(size):.1f}" y="{top + height + 18}" text-anchor="middle">{size:,}</text>')
    for number, (operation, values) in enumerate(rows.items()):
        colour = COLOURS[number % len(COLOURS)]
        points = " ".join(f"{x(s):.1f},{y(t):.1f}" for s, t in sorted(values.items()))
        out.append(f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="2"/>'
                   f'<rect x="{left + width + 16}" y="{top + number * 18}" width="10" height="10" '
                   f'fill="{colour}"/><text x="{left + width + 32}" y="{top + number * 18 + 9}">'
                   f'{operation}</text>')
    return ('<svg xmlns="http://www.w3.org/2000/svg" font-family="sans-serif" font-size="12" '
            f'width="{left + width + 260}" height="{top + height + 40}">'
            '<rect width="100%" height="100%" fill="white"/>'
            f'<text x="10" y="20" font-weight="bold">time by {axis}</text>{"".join(out)}</svg>\n')


def sizes_of(options):
    steps = 2 if options.quick else 3
    return {"tree": [1000 * 10 ** n for n in range(steps + 1)],
            "changes": [100 * 10 ** n for n in range(steps + 1)],
            "timeline": [10 * 10 ** n for n in range(steps + 1)],
            "file": [20 << 20 << (10 * n) // 3 for n in range(steps + 1)]}


def measure(options, place, missing):
    growth = Growth(options, place)
    for axis, sizes in sizes_of(options).items():
        if options.only and options.only not in axis:
            continue
        for size in sizes:
            try:
                getattr(growth, axis)(size)
                print(f"growth: {axis} {size:,}", file=sys.stderr)
            except OSError as error:
                missing.append(f"growth: {axis} of {size:,}: {error}")
                print(missing[-1], file=sys.stderr)
                for left in ("lower", "view"):
                    sh("rm", "-rf", os.path.join(place, left), check=False)
                break
    return growth.cells


def save(cells, about, stem):
    with open(stem + "-growth.json", "w", encoding="utf-8") as f:
        json.dump({"version": 1, "about": about, "rows": [
            {"axis": a, "operation": o, "seconds": {str(s): t for s, t in v.items()}}
            for (a, o), v in cells.items()]}, f, indent=1)
    written = [stem + "-growth.json"]
    for axis in dict.fromkeys(a for a, _ in cells):
        path = f"{stem}-growth-{axis.replace(' ', '-')}.svg"
        with open(path, "w", encoding="utf-8") as f:
            f.write(svg(axis, {o: v for (a, o), v in cells.items() if a == axis}))
        written.append(path)
    return written
