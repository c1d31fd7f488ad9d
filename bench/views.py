# SPDX-License-Identifier: Apache-2.0
"""The ways to look at a lower tree that are measured beside each other. Each is
a class with

    unavailable()      None, or a sentence on why it cannot run here
    open(lower, at)    make the view; the directory to work in
    close()            take it down and remove what it held
    shows_lower        False: it begins empty, for workloads that only make files

A view is used by one round of one workload and then closed, so that no round
sees what another one wrote.
"""
import glob
import os
import shutil
import subprocess
import time

from bed import sh


# Whether FUSE mounts made from now on may use io_uring.
SWITCH = "/sys/module/fuse/parameters/enable_uring"


def switch(to):
    """Sets it; what it was, or None where it cannot be set."""
    if not os.access(SWITCH, os.W_OK):
        return None
    with open(SWITCH, encoding="ascii") as f:
        before = f.read().strip()
    with open(SWITCH, "w", encoding="ascii") as f:
        f.write(to)
    return before


class Native:
    """A plain copy on the same file system."""
    name = "native"
    shows_lower = True

    def __init__(self, options):
        self.at = None

    def unavailable(self):
        return None

    def open(self, lower, at):
        self.at = at
        sh("cp", "-a", "--reflink=never", lower, at)
        return at

    def close(self):
        shutil.rmtree(self.at, ignore_errors=True)


class Overlay:
    """A mount over `lower` with an upper directory beside it."""
    name = ""
    shows_lower = True

    def __init__(self, options):
        self.at = None

    def mount(self, options, target):
        raise NotImplementedError

    def open(self, lower, at):
        self.at = at
        for part in ("upper", "work", "merged"):
            os.makedirs(os.path.join(at, part))
        options = f"lowerdir={lower},upperdir={at}/upper,workdir={at}/work"
        self.mount(options, os.path.join(at, "merged"))
        return os.path.join(at, "merged")

    def close(self):
        sh("umount", "-l", os.path.join(self.at, "merged"), check=False)
        shutil.rmtree(self.at, ignore_errors=True)


class KernelOverlay(Overlay):
    name = "overlayfs"

    def unavailable(self):
        if os.getuid() != 0:
            return "needs root"
        with open("/proc/filesystems", encoding="ascii") as f:
            known = "overlay" in f.read()
        if not known and sh("modprobe", "overlay", check=False).returncode != 0:
            return "the kernel has no overlayfs"
        return None

    def mount(self, options, target):
        sh("mount", "-t", "overlay", "-o", options, "overlay", target)


class FuseOverlay(Overlay):
    name = "fuse-overlayfs"

    def unavailable(self):
        if shutil.which("fuse-overlayfs") is None:
            return "fuse-overlayfs is not installed"
        return None if os.path.exists("/dev/fuse") else "no /dev/fuse"

    def mount(self, options, target):
        sh("fuse-overlayfs", "-o", options, target)


class Stoplog:
    """`stoplog mount` over the lower tree, with state of its own."""
    name = "stoplog"
    shows_lower = True
    rings = "N"

    def __init__(self, options):
        self.program = options.stoplog
        self.env = None
        self.at = None
        self.lower = None

    def unavailable(self):
        if not os.access(self.program, os.X_OK):
            return f"{self.program} is not built"
        found = subprocess.run([self.program, "mount", "--help"], capture_output=True, check=False)
        if found.returncode != 0 or b"mount" not in found.stdout:
            return "this stoplog has no `mount`"
        return None

    def prepare(self, at):
        self.at = at
        self.env = dict(os.environ)
        for name in ("HOME", "XDG_STATE_HOME", "XDG_RUNTIME_DIR", "XDG_CONFIG_HOME"):
            self.env[name] = os.path.join(at, name.lower())
            os.makedirs(self.env[name], mode=0o700)
        self.env.pop("STOPLOG_DRAFT", None)

    def call(self, *argv, check=True, **options):
        return sh(self.program, "--workspace", self.lower, *argv, env=self.env,
                  check=check, **options)

    def open(self, lower, at):
        self.lower = lower
        self.prepare(at)
        merged = os.path.join(at, "merged")
        os.mkdir(merged)
        before = switch(self.rings)
        try:
            self.call("mount", merged)
        finally:
            if before:
                switch(before)
        if not os.path.ismount(merged):
            raise OSError(f"`stoplog mount` succeeded, but {merged} is no mount")
        return merged

    def close(self):
        self.call("unmount", check=False)
        self.call("discard", "-y", check=False)
        for _ in range(500):  # on a busy machine it takes its time
            if not self.daemon_pids():
                break
            time.sleep(0.02)
        sh("umount", "-l", os.path.join(self.at, "merged"), check=False)
        shutil.rmtree(self.at, ignore_errors=True)

    def last_words(self):
        """What its daemon wrote last: why it is gone, if it is."""
        if self.env is None:
            return "nothing"
        logs = glob.glob(os.path.join(self.env["XDG_STATE_HOME"], "stoplog/drafts/*/daemon.log"))
        lines = []
        for log in sorted(logs, key=os.path.getmtime):
            with open(log, encoding="utf-8", errors="replace") as f:
                lines += f.read().splitlines()
        return lines[-1] if lines else "nothing"

    def daemon_pids(self):
        """Processes of our program that hold this view's state."""
        state = self.env["XDG_STATE_HOME"].encode()
        pids = []
        for entry in os.listdir("/proc"):
            if not entry.isdigit():
                continue
            try:
                with open(f"/proc/{entry}/environ", "rb") as f:
                    mine = state in f.read()
                if mine and os.readlink(f"/proc/{entry}/exe") == os.path.realpath(self.program):
                    pids.append(int(entry))
            except OSError:
                pass
        return pids


class StoplogRings(Stoplog):
    """The same, its requests over io_uring: the kernel's switch is on while it
    mounts, and off while the one above does."""
    name = "stoplog+uring"
    rings = "Y"

    def unavailable(self):
        if not os.access(SWITCH, os.W_OK):
            return "this kernel has no FUSE over io_uring, or this is not root"
        return super().unavailable()


class Floor:
    """A FUSE file system in memory that does nothing else: what round trips
    take here."""
    name = "FUSE floor"
    shows_lower = False

    def __init__(self, options):
        self.program = options.floor
        self.process = None
        self.at = None

    def unavailable(self):
        if not os.access(self.program, os.X_OK):
            return f"{self.program} is not built"
        return None if os.path.exists("/dev/fuse") else "no /dev/fuse"

    def open(self, lower, at):
        os.mkdir(at)
        self.at = at
        self.process = subprocess.Popen([self.program, at])
        while not os.path.ismount(at):
            if self.process.poll() is not None:
                raise OSError(f"{self.program} ended with {self.process.returncode}")
            time.sleep(0.001)
        return at

    def close(self):
        sh("umount", "-l", self.at, check=False)
        if self.process:
            self.process.wait()
        os.rmdir(self.at)


ALL = [Native, KernelOverlay, FuseOverlay, Stoplog, StoplogRings, Floor]
