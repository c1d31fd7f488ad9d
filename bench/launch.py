# SPDX-License-Identifier: Apache-2.0
"""Starting a command: plain exec, unshare, bubblewrap, and `stoplog run` cold
(daemon, mount and all walls) and warm (in a live draft)."""
import os
import shutil
import subprocess
import time

from views import Stoplog


def start_to_exit(argv, env=None, cwd=None):
    begin = time.monotonic()
    done = subprocess.run(argv, env=env, cwd=cwd, stdin=subprocess.DEVNULL,
                          stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, check=False)
    took = time.monotonic() - begin
    if done.returncode != 0:
        raise RuntimeError(f"{argv[0]} failed: {done.stderr.decode(errors='replace')}")
    return took


BWRAP = ["bwrap", "--unshare-all", "--ro-bind", "/usr", "/usr", "--symlink", "usr/lib", "/lib",
         "--symlink", "usr/lib64", "/lib64", "--symlink", "usr/bin", "/bin", "--proc", "/proc",
         "--dev", "/dev", "--tmpfs", "/tmp", "true"]


def measure(options, place, samples, missing):
    """Adds {("launch", "true"): {view: [seconds]}} to `samples`."""
    work = os.path.join(place, "launch")
    lower = os.path.join(work, "w")
    os.makedirs(lower)
    with open(os.path.join(lower, "README"), "w", encoding="ascii") as f:
        f.write("hello\n")
    ways = {"exec": lambda: start_to_exit(["/bin/true"])}
    if shutil.which("unshare"):
        ways["unshare"] = lambda: start_to_exit(["unshare", "-mpfuinCU", "true"])
    if shutil.which("bwrap"):
        ways["bubblewrap"] = lambda: start_to_exit(BWRAP)
    else:
        missing.append("bubblewrap: not installed")
    stoplog = Stoplog(options)
    warm = None
    why = stoplog.unavailable()
    if why is None:
        def cold():
            view = Stoplog(options)
            view.lower = lower
            view.prepare(os.path.join(work, "cold"))
            try:
                return start_to_exit([options.stoplog, "run", "--quiet", "--", "true"],
                                     env=view.env, cwd=lower)
            finally:
                view.close()
        ways["stoplog cold"] = cold
        warm = Stoplog(options)
        warm.lower = lower
        warm.prepare(os.path.join(work, "warm"))
        command = [options.stoplog, "run", "--quiet", "--", "true"]
        ways["stoplog warm"] = lambda: start_to_exit(command, env=warm.env, cwd=lower)
        # The exit code is the command's: so a command did run.
        tried = subprocess.run([options.stoplog, "run", "--quiet", "--", "sh", "-c", "exit 7"],
                               env=warm.env, cwd=lower, capture_output=True, check=False)
        if tried.returncode != 7:
            del ways["stoplog cold"], ways["stoplog warm"]
            missing.append(f"stoplog run: exit {tried.returncode}: "
                           + tried.stderr.decode(errors="replace").strip())
    else:
        missing.append(f"stoplog run: {why}")
    try:
        working = {}
        for name, way in ways.items():
            try:
                way()  # not counted: the first one loads everything
                working[name] = way
            except (RuntimeError, OSError, subprocess.CalledProcessError) as error:
                missing.append(f"launch by {name}: {error}")
        found = samples.setdefault(("launch", "true"), {})
        for _ in range(options.launches):
            for name, way in working.items():
                try:
                    found.setdefault(name, []).append(way())
                except RuntimeError as error:
                    missing.append(f"one launch by {name}: {error}")
    finally:
        if warm is not None:
            warm.close()
        shutil.rmtree(work, ignore_errors=True)
