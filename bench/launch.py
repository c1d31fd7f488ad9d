# SPDX-License-Identifier: Apache-2.0
"""Starting a command, as seen from the caller, start to exit: plain exec,
unshare, bubblewrap with a small jail and with stoplog's own walls, and `stoplog
run`: in a live draft (with its summary, and --quiet), over a draft that is there
(daemon, mount and all walls cold), over a new one; and `stoplog mount` until a
file can be seen. Interleaved; what a daemon leaves to be cleared up has ended
before the next one is timed."""
import os
import shutil
import signal
import subprocess
import time

from views import Stoplog

TRUE = "/bin/true"
BWRAP = ["bwrap", "--unshare-all", "--ro-bind", "/usr", "/usr", "--symlink", "usr/lib", "/lib",
         "--symlink", "usr/lib64", "/lib64", "--symlink", "usr/bin", "/bin", "--proc", "/proc",
         "--dev", "/dev", "--tmpfs", "/tmp", TRUE]
# The kernel ends namespaces and mounts after the last process in them.
SETTLE = 0.06


def start_to_exit(argv, env=None):
    """Seconds. Not subprocess: its own work would be a third of a plain exec."""
    program = shutil.which(argv[0])
    null = [(os.POSIX_SPAWN_OPEN, fd, "/dev/null", os.O_RDWR, 0) for fd in (0, 1, 2)]
    begin = time.monotonic()
    pid = os.posix_spawn(program, argv, env or os.environ, file_actions=null)
    _, status = os.waitpid(pid, 0)
    took = time.monotonic() - begin
    if status != 0:
        raise RuntimeError(f"{' '.join(argv[:3])} failed: status {status}")
    return took


def same_walls(stoplog, env, lower, home):
    """bubblewrap's options for the root file system that `run --dry-run` tells:
    each bind, file, tmpfs and mask. Landlock, limits and the system call filter
    it does not have."""
    told = subprocess.run([stoplog, "run", "--dry-run", "--", TRUE], env=env, cwd=lower,
                          capture_output=True, text=True, check=True).stdout
    argv = ["bwrap", "--unshare-all", "--die-with-parent", "--new-session", "--cap-drop", "ALL"]
    has_proc = False
    for line in told.split("file system:\n")[1].split("\n\n")[0].splitlines():
        kind, *rest = line.split()
        if kind == "bind":
            argv += ["--dev-bind" if rest[2].startswith("/dev/") else "--ro-bind",
                     rest[0], rest[2]]
        elif kind == "link":
            argv += ["--symlink", rest[2], rest[0]]
        elif kind in ("copy", "protect"):
            argv += ["--ro-bind", rest[0], rest[0]]
        elif kind == "file" and rest[0].startswith("/etc/"):
            argv += ["--ro-bind", "/etc/hostname", rest[0]]
        elif kind == "dir":
            argv += ["--dir", rest[0]]
        elif kind in ("tmpfs", "notes"):
            argv += ["--tmpfs", rest[0]]
        elif kind == "home":
            argv += ["--bind", home, rest[1]]
        elif kind == "workspace":
            argv += ["--bind", lower, rest[1]]
        elif kind == "proc" and not has_proc:
            has_proc = True
            argv += ["--proc", "/proc"]
        elif kind == "mask":
            argv += ["--tmpfs", rest[0]] if os.path.isdir(rest[0]) else \
                ["--ro-bind", "/dev/null", rest[0]]
    return argv + ["--remount-ro", "/", "--chdir", lower, TRUE]


class Place(Stoplog):
    """State of its own for one way of starting."""

    def __init__(self, options, lower, at):
        super().__init__(options)
        self.lower = lower
        self.prepare(at)

    def run(self, *how):
        return start_to_exit([self.program, "--workspace", self.lower, "run", *how, "--", TRUE],
                             env=self.env)

    def end(self):
        """The daemon, told to; returns when all of it is gone."""
        for pid in self.daemon_pids():
            try:
                with open(f"/proc/{pid}/comm", encoding="ascii") as f:
                    if f.read().strip() != "stoplog-guard":
                        os.kill(pid, signal.SIGTERM)
            except OSError:
                pass  # it has ended by itself
        while self.daemon_pids():
            time.sleep(0.01)

    def cold(self):
        try:
            return self.run("--quiet")
        finally:
            self.end()

    def mount(self):
        merged = os.path.join(self.at, "merged")
        os.makedirs(merged, exist_ok=True)
        try:
            begin = time.monotonic()
            start_to_exit([self.program, "--workspace", self.lower, "mount", merged],
                          env=self.env)
            os.stat(os.path.join(merged, "README"))
            return time.monotonic() - begin
        finally:
            self.end()


def new_draft(options, lower, at):
    place = Place(options, lower, at)
    try:
        return place.cold()
    finally:
        shutil.rmtree(at, ignore_errors=True)


def stoplog_ways(options, work, lower, places, ways, missing):
    def place(name):
        places.append(Place(options, lower, os.path.join(work, name)))
        return places[-1]
    warm, cold, shown = place("warm"), place("cold"), place("shown")
    # The exit code is the command's: so a command did run.
    tried = subprocess.run([options.stoplog, "run", "--quiet", "--", "sh", "-c", "exit 7"],
                           env=warm.env, cwd=lower, capture_output=True, check=False)
    if tried.returncode != 7:
        missing.append(f"stoplog run: exit {tried.returncode}: "
                       + tried.stderr.decode(errors="replace").strip())
        return
    if "bubblewrap" in ways:
        walls = same_walls(options.stoplog, warm.env, lower, warm.env["HOME"])
        ways["bubblewrap, same walls"] = lambda: start_to_exit(walls)
    ways["stoplog warm"] = warm.run
    ways["stoplog warm --quiet"] = lambda: warm.run("--quiet")
    ways["stoplog cold"] = cold.cold
    ways["stoplog cold, new draft"] = lambda: new_draft(options, lower, os.path.join(work, "new"))
    ways["stoplog mount"] = shown.mount


def measure(options, place, samples, missing):
    """Adds {("launch", "true"): {way: [seconds]}} to `samples`, and the same without a
    pause for the ways that leave nothing behind: after a pause each process that is
    woken up pays for an idle processor."""
    work = os.path.join(place, "launch")
    lower = os.path.join(work, "w")
    os.makedirs(lower)
    with open(os.path.join(lower, "README"), "w", encoding="ascii") as f:
        f.write("hello\n")
    ways = {"exec": lambda: start_to_exit([TRUE])}
    if shutil.which("unshare"):
        ways["unshare"] = lambda: start_to_exit(["unshare", "-mpfuinCU", TRUE])
    if shutil.which("bwrap"):
        ways["bubblewrap"] = lambda: start_to_exit(BWRAP)
    else:
        missing.append("bubblewrap: not installed")
    places = []
    try:
        why = Stoplog(options).unavailable()
        if why is None:
            stoplog_ways(options, work, lower, places, ways, missing)
        else:
            missing.append(f"stoplog run: {why}")
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
                # Nobody pays for what the one before left to the kernel: sixty mounts
                # of bubblewrap's walls slowed whatever came next by half.
                time.sleep(SETTLE)
                try:
                    found.setdefault(name, []).append(way())
                except RuntimeError as error:
                    missing.append(f"one launch by {name}: {error}")
        found = samples.setdefault(("launch", "true, back to back"), {})
        for _ in range(5 * options.launches):
            for name in ("exec", "stoplog warm", "stoplog warm --quiet"):
                if name in working:
                    found.setdefault(name, []).append(working[name]())
    finally:
        for one in places:
            one.end()
        shutil.rmtree(work, ignore_errors=True)
