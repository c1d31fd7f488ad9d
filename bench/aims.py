#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What was aimed at beside what a run of scripts/bench measured, as tables for
docs/PERFORMANCE.md.

    bench/aims.py STEM [DOCUMENT]

STEM is where the run wrote its JSON (build/bench/ext4). Prints the tables; with
DOCUMENT they take the place of what stands there between the lines

    <!-- measured: files -->  and  <!-- end -->

and the same for `program` and `launch`. A row that was not measured says so.
"""
import json
import os
import re
import sys

from report import ratio, seconds

# Of a row: what it is called, (workload, part) of each figure, the aims.
FILES = [
    ("git status, settled / warm", [("git status, settled", "settled"), ("git status", "warm")],
     "1.5 / 1.2"),
    ("find + stat, settled / warm", [("find + stat, settled", "settled"), ("find + stat", "warm")],
     "1.5 / 1.2"),
    ("grep -r, settled / rg, warm", [("grep -r, settled", "settled"), ("rg", "warm")],
     "1.8 / 1.05"),
    ("open + read + close, warm", [("small files", "open+read+close warm")], "1.15"),
    ("create + write 4 KiB + close", [("small files", "create 4K")], "2"),
    ("the same, 99th percentile", [("small files", "create 4K p99")], "–"),
    ("append 4 KiB", [("small files", "append 4K")], "6"),
    ("unlink", [("small files", "unlink")], "–"),
    ("unpack a tarball", [("unpack", "tar x")], "1.2"),
    ("rm -rf, lower / fresh", [("remove", "rm -rf lower"), ("unpack", "rm -rf fresh")],
     "2 / 2.5"),
    ("sequential write", [("sequential write", None)], "2.5"),
    ("cmake + make -j2", [("cmake + make", "both")], "1.1"),
    ("npm ci", [("npm", "npm ci")], "1.0"),
    ("git status / find / grep -r, first after mounting",
     [("git status, first", "first"), ("find + stat", "first"), ("grep -r", "first")], "–"),
]
TIMES = [("1 byte to a large lower file", ("large lower file", None), "1 ms"),
         ("mount until usable", ("mount", "until usable"), "5 ms")]
VIEWS = ["overlayfs", "fuse-overlayfs", "stoplog", "stoplog+uring", "FUSE floor"]
PROGRAM = [("version", "1"), ("status of a small draft", "1"), ("patch of", "0.5"),
           ("change set of", "0.5"), ("names of", "–"), ("create", "1.5 durable / 2.5 clean"),
           ("replace", "1.5 durable / 2.5 clean"), ("commit of", "–"), ("undo of", "1.5"),
           ("mark", "1"), ("rollback", "0.1"), ("fork", "0.1"), ("export", "2"), ("replay", "1")]
LAUNCH = [("stoplog warm", "exec", "3 (better 2.5)"), ("stoplog warm --quiet", "exec", "3"),
          ("stoplog cold", "bubblewrap, same walls", "1 (better 0.7)"),
          ("stoplog cold, new draft", "bubblewrap, same walls", "1 (better 0.7)"),
          ("stoplog cold", "bubblewrap", "–"), ("stoplog mount", "exec", "5 ms")]


def load(stem):
    """(workload, part) -> view -> row, of all groups; and what the runs were."""
    rows, about = {}, {}
    for group in ("", "-mount", "-program", "-timeline", "-launch"):
        if not os.path.exists(stem + group + ".json"):
            continue
        with open(stem + group + ".json", encoding="utf-8") as f:
            data = json.load(f)
        about = data["about"]
        for row in data["rows"]:
            rows.setdefault((row["workload"], row["part"]), {})[row["view"]] = row
    return rows, about


def find(rows, workload, part):
    """`part` None: the only one, whose name tells a size."""
    for (w, p), views in rows.items():
        if w == workload and part in (None, p):
            return views
    return {}


def figure(row):
    return f"{ratio(row['ratio_min'])}–{ratio(row['ratio_median'])}" if row else "–"


def files(rows):
    lines = ["| workload | native | " + " | ".join(VIEWS) + " | aim |", "|---" * 8 + "|"]
    for name, parts, aim in FILES:
        views = [find(rows, *part) for part in parts]
        if not any(views):
            lines.append(f"| {name} | not measured |" + " |" * 5 + f" {aim} |")
            continue
        native = " / ".join(seconds(v["native"]["median"]) if "native" in v else "–"
                            for v in views)
        cells = [" / ".join(figure(v.get(view)) for v in views) for view in VIEWS]
        cells[2] = f"**{cells[2]}**"
        lines.append(f"| {name} | {native} | " + " | ".join(cells) + f" | {aim} |")
    for name, part, aim in TIMES:
        views = find(rows, *part)
        cells = [f"{seconds(views[v]['min'])}–{seconds(views[v]['median'])}"
                 if v in views else "–" for v in ["native"] + VIEWS]
        lines.append(f"| {name} | " + " | ".join(cells) + f" | {aim} |")
    return lines


def program(rows):
    lines = ["| | plain tool | stoplog | ratio, least–median | aim |", "|---" * 5 + "|"]
    for (workload, part), views in rows.items():
        if workload not in ("program", "timeline") or "stoplog" not in views:
            continue
        aim = next((a for start, a in PROGRAM if part.startswith(start)), "–")
        plain, ours = views["plain tool"], views["stoplog"]
        lines.append(f"| {part} | {seconds(plain['median'])} | {seconds(ours['median'])} | "
                     f"{figure(ours)} | {aim} |")
    return lines


def launch(rows):
    lines = ["| | beside | time, least–median | ratio, least–median | aim |", "|---" * 5 + "|"]
    for part in ("true", "true, back to back"):
        views = find(rows, "launch", part)
        for name, beside, aim in LAUNCH:
            if name not in views or beside not in views:
                continue
            ours, other = views[name], views[beside]
            lines.append(f"| {name}{part[4:]} | {beside} | {seconds(ours['min'])}–"
                         f"{seconds(ours['median'])} | {ratio(ours['min'] / other['min'])}–"
                         f"{ratio(ours['median'] / other['median'])} | {aim} |")
    return lines


def main(argv):
    if not 2 <= len(argv) <= 3:
        print(__doc__, file=sys.stderr)
        return 2
    rows, about = load(argv[1])
    if not rows:
        print(f"aims: nothing was measured at {argv[1]}", file=sys.stderr)
        return 1
    said = (f"{about['date'][:10]}, {about['filesystem']}, kernel {about['kernel']}, "
            f"{about['cpus']} processors, {about['files']} files, {about['rounds']} rounds.")
    tables = {"files": files(rows), "program": program(rows), "launch": launch(rows)}
    text = ""
    if len(argv) == 3:
        with open(argv[2], encoding="utf-8") as f:
            text = f.read()
    for name, lines in tables.items():
        if len(lines) == 2:
            continue  # none of it was measured
        block = "\n".join([said, ""] + lines)
        print(block + "\n")
        pattern = rf"(<!-- measured: {name} -->\n).*?(<!-- end -->)"
        text = re.sub(pattern, lambda m, b=block: f"{m[1]}{b}\n{m[2]}", text, flags=re.S)
    if len(argv) == 3:
        with open(argv[2], "w", encoding="utf-8") as f:
            f.write(text)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv))
