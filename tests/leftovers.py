#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What the tests left behind: processes, mounts, cgroups, temporary files, and
the kernel's switch for FUSE over io_uring.

usage: leftovers.py before|after|clean TMPDIR BUILD

`before` notes what is there; `after` prints one line for each thing that came
since and exits 1 when there is any; `clean` removes what is ours. Ours is what
lies beneath TMPDIR or runs from BUILD. Things of stoplog elsewhere count only
when no other stoplog runs on this machine, since they may belong to it;
STOPLOG_SHARED_MACHINE=1 says that one does.
"""
import glob
import json
import os
import re
import signal
import subprocess
import sys
import time


def processes():
    """pid -> path of its program, for every process that can be read."""
    found = {}
    for entry in os.listdir("/proc"):
        if entry.isdigit() and int(entry) != os.getpid():
            try:
                found[int(entry)] = os.readlink(f"/proc/{entry}/exe").removesuffix(
                    " (deleted)")
            except OSError:
                pass
    return found


def mounts():
    with open("/proc/self/mountinfo", encoding="utf-8", errors="replace") as f:
        return {line.split(" ")[4] for line in f}


def cgroups():
    return set(glob.glob("/sys/fs/cgroup/**/*stoplog*", recursive=True))


def temp_files():
    """Of the program itself. What the tests make honours TMPDIR: such names
    elsewhere belong to somebody else's tests."""
    return {name for name in glob.glob("/tmp/stoplog*") + glob.glob("/tmp/.stoplog*")
            if not re.match(r"/tmp/stoplog-(test|unit|bench)", name)}


SWITCH = "/sys/module/fuse/parameters/enable_uring"


def switch():
    """Whether FUSE may use io_uring: a test turns it, for itself alone."""
    try:
        with open(SWITCH, encoding="ascii") as f:
            return f.read().strip()
    except OSError:
        return None


def ours(build):
    return {pid: exe for pid, exe in processes().items()
            if exe.startswith(build + "/")}


def others(build):
    return os.environ.get("STOPLOG_SHARED_MACHINE") == "1" or any(os.path.basename(exe).startswith(("stoplog", "test_"))
               and not exe.startswith(build + "/")
               for exe in processes().values())


def state():
    return {"mounts": sorted(mounts()), "cgroups": sorted(cgroups()),
            "temp": sorted(temp_files()), "switch": switch()}


def after(tmp, build, note):
    old = json.load(open(note, encoding="utf-8"))
    # A process that was told to end may need a moment for it.
    for _ in range(50):
        if not ours(build):
            break
        time.sleep(0.1)
    left = [f"process {pid} {exe}" for pid, exe in ours(build).items()]
    alone = not others(build) and not old["others"]
    for mount in mounts() - set(old["mounts"]):
        if mount.startswith(tmp) or (alone and "stoplog" in mount):
            left.append(f"mount {mount}")
    left += [f"file {os.path.join(tmp, name)}" for name in os.listdir(tmp)
             if os.path.join(tmp, name) != note]
    if alone:
        left += [f"cgroup {c}" for c in cgroups() - set(old["cgroups"])]
        left += [f"file {t}" for t in temp_files() - set(old["temp"])]
        if switch() != old["switch"]:
            left.append(f"{SWITCH} is {switch()}, was {old['switch']}")
    return left


def set_back(build, note):
    """The switch, when no other's test may have it just now."""
    try:
        old = json.load(open(note, encoding="utf-8"))
        if old["switch"] != switch() and not old["others"] and not others(build):
            with open(SWITCH, "w", encoding="ascii") as f:
                f.write(old["switch"])
    except (OSError, ValueError, TypeError):
        pass


def clean(tmp, build):
    set_back(build, os.path.join(tmp, ".before.json"))
    for pid in ours(build):
        try:
            os.kill(pid, signal.SIGKILL)
        except OSError:
            pass
    for mount in sorted(mounts(), reverse=True):
        if mount.startswith(tmp + "/"):
            subprocess.run(["umount", "-l", mount], check=False)
    subprocess.run(["rm", "-rf", "--one-file-system", tmp], check=False)


def main():
    what, tmp, build = sys.argv[1:]
    build = os.path.realpath(build)
    note = os.path.join(tmp, ".before.json")
    if what == "before":
        with open(note, "w", encoding="utf-8") as f:
            json.dump(state() | {"others": others(build)}, f)
    elif what == "clean":
        clean(tmp, build)
    else:
        left = after(tmp, build, note)
        print("\n".join(left))
        sys.exit(1 if left else 0)


if __name__ == "__main__":
    main()
