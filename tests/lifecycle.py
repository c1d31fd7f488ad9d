#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A draft's whole life at random: commands that edit, approvals of some of the
changes, commits, undos, rollbacks, discards, kills of the daemon, in any order,
over a real tree that is looked at after each step. Checked:

- nothing but a commit, an undo or ourselves changes the real tree;
- a commit makes what was approved as the draft has it, and nothing else;
- the agent sees the same tree before and after a commit, and after the daemon
  was killed;
- what was not approved is still held, and nothing else is;
- an undo gives the real tree of before the commit, byte for byte;
- a rollback gives the agent's tree of that moment;
- a bundle of the draft comes through over a copy of the real tree: the same
  change set, the same history.

usage: lifecycle.py STOPLOG PLACE SEED STEPS
"""
import hashlib
import json
import os
import random
import shutil
import stat
import subprocess
import sys

# Runs inside: performs operations, then prints the tree.
INSIDE = r"""
import json, os, sys, hashlib, stat
def safe(f, *a, **k):
    try: f(*a, **k)
    except OSError: pass
def write(p, text, mode='w'):
    with open(p, mode) as f: f.write(text)
def sub(p, old, new):
    t = open(p).read().replace(old, new, 1)
    with open(p, 'w') as f: f.write(t)
def save(p, text):
    write(p + '.tmp~', text); os.rename(p + '.tmp~', p)
OPS = dict(write=write, append=lambda p, t: write(p, t, 'a'), sub=sub, save=save,
           mkdir=os.mkdir, rmdir=os.rmdir, unlink=os.unlink, rename=os.rename,
           symlink=os.symlink, link=os.link, chmod=os.chmod,
           truncate=os.truncate, touch=lambda p: os.utime(p, (1e9, 1e9)))
for name, *args in json.loads(sys.argv[1]): safe(OPS[name], *args)
"""
WALK = r"""
def content(p):
    try:
        with open(p, 'rb') as f: return hashlib.sha1(f.read()).hexdigest()
    except OSError as e: return str(e)
def walk(top):
    out = {}
    for d, dirs, files in os.walk(top):
        dirs[:] = [n for n in dirs if os.path.relpath(os.path.join(d, n), top) != '.git']
        for n in dirs + files:
            p = os.path.join(d, n)
            s = os.lstat(p)
            if stat.S_ISLNK(s.st_mode): v = ['link', os.readlink(p)]
            elif stat.S_ISDIR(s.st_mode): v = ['dir', s.st_mode & 0o7777]
            else: v = ['file', s.st_mode & 0o7777, content(p)]
            out[os.path.relpath(p, top)] = v
    return out
"""
exec(WALK)  # one walk for both sides

NAMES = ["a", "b", "c", "sub", "sub/x", "sub/y", "deep", "deep/one", "deep/one/f", "new",
         "new/g", "lines", "big", "host"]


class Failed(Exception):
    pass


class Life:
    def __init__(self, program, place, seed):
        self.program, self.random = program, random.Random(seed)
        self.top = os.path.join(place, "w")
        self.log = []
        self.marks = {}    # mark -> tree of the agent
        self.commits = []  # number, real tree before and after, paths, draft
        os.makedirs(self.top)
        self.seed_tree()
        self.real = self.look()
        self.view = dict(self.real)

    def seed_tree(self):
        os.makedirs(f"{self.top}/sub")
        os.makedirs(f"{self.top}/deep/one")
        for name in ("a", "b", "sub/x", "sub/y", "deep/one/f"):
            with open(f"{self.top}/{name}", "w", encoding="ascii") as f:
                f.write(f"the file {name}\n" * 3)
        with open(f"{self.top}/lines", "w", encoding="ascii") as f:
            f.write("".join(f"line {i}\n" for i in range(100)))
        with open(f"{self.top}/big", "w", encoding="ascii") as f:
            f.write("0123456789abcde\n" * 40000)
        os.link(f"{self.top}/b", f"{self.top}/linked")
        with open(f"{self.top}/host", "w", encoding="ascii") as f:
            f.write("the person's\n")

    def look(self):
        return walk(self.top)

    def call(self, *argv, codes=(0,), text=None):
        done = subprocess.run([self.program, *argv], cwd=self.top, input=text,
                              capture_output=True, text=True, check=False)
        shown = " ".join(argv if argv[0] != "run" else argv[:2] + argv[-1:])
        if argv[0] not in ("status", "log", "drafts") and "log" not in argv:
            self.log.append(f"{shown} -> {done.returncode}")
        if done.returncode not in codes:
            raise Failed(f"exit {done.returncode}: {shown}: {done.stderr}")
        return done

    def status(self):
        return json.loads(self.call("status", "--json").stdout)

    # --- what may happen ---------------------------------------------------

    def path(self):
        return self.random.choice(NAMES[:-1])

    def operation(self):
        r = self.random
        p, q = self.path(), self.path()
        return r.choice([
            ["write", p, f"written {r.random()}\n"], ["append", p, f"more {r.random()}\n"],
            ["save", p, f"saved {r.random()}\n"], ["sub", "lines", f"line {r.randrange(100)}\n",
                                                   f"changed {r.random()}\n"],
            ["mkdir", p], ["rmdir", p], ["unlink", p], ["rename", p, q], ["rename", p, q],
            ["symlink", q, p], ["chmod", p, r.choice([0o755, 0o700, 0o775, 0o711])],
            ["truncate", p, r.randrange(3000)], ["touch", p], ["append", "big", "x" * 100],
            ["append", p, "tail\n"]])

    def run(self, operations):
        """One command: its operations, then the tree as the agent sees it."""
        code = INSIDE + WALK + "print(json.dumps(walk('.')))"
        before = self.view
        out = self.call("run", "--quiet", "--", "python3", "-c", code, json.dumps(operations))
        self.view = json.loads(out.stdout)
        log = json.loads(self.call("log", "--json").stdout)["entries"]
        last = [e for e in log if e["kind"] == "run"][-1]
        if last["mark_before"]:
            # One that does nothing finds what it leaves: an undo may have come
            # before it.
            self.marks[(self.draft(), last["mark_before"])] = \
                dict(before if operations else self.view)
        self.marks[(self.draft(), last["mark_after"])] = dict(self.view)

    def draft(self):
        return self.status().get("draft")

    def edit(self):
        self.run([self.operation() for _ in range(self.random.randrange(1, 8))])

    def host_edit(self):
        """The person edits what the draft has not touched: the agent sees it."""
        text = f"edited by hand {self.random.random()}\n"
        with open(f"{self.top}/host", "w", encoding="ascii") as f:
            f.write(text)
        self.real = self.look()
        self.view["host"] = self.real["host"]

    def rows(self):
        return [c for c in self.status()["changes"]]

    def commit(self):
        rows = self.rows()
        if not rows:
            return
        moved = any(c["from"] or c["type"] == "dir" or c["kind"] == "type" for c in rows)
        chosen = rows if moved else [c for c in rows if self.random.random() < 0.6]
        if not chosen:
            return
        whole = len(chosen) == len(rows)
        draft = self.draft()
        self.call("approve", "--danger", "--", *[c["path"] for c in chosen])
        done = self.call("commit", "-y", codes=(0, 4))
        if done.returncode == 4:  # what is approved needs more
            self.call("approve", "--all", "--danger")
            self.call("commit", "-y")
            whole, chosen = True, rows
        before, self.real = self.real, self.look()
        number = max(e["commit"] for e in self.ledger() if e["kind"] == "commit")
        self.commits.append((number, before, self.real, {c["path"] for c in chosen},
                             draft))
        if whole:
            self.differ(self.view, self.real, "the real tree after a whole commit")
        names = {c["path"] for c in chosen} | {c["from"] for c in chosen if c["from"]}
        for path in set(before) | set(self.real) | set(self.view):
            new, old, wanted = self.real.get(path), before.get(path), self.view.get(path)
            if (new or old or wanted)[0] == "dir":
                continue
            if path in names or any(path.startswith(n + "/") for n in names):
                if new != wanted:
                    raise Failed(f"{path} was approved as {wanted} and is {new}")
            elif new != old:
                raise Failed(f"{path} was not approved: {old} became {new}")
        left = {c["path"] for c in self.rows()}
        expected = {c["path"] for c in rows} - {c["path"] for c in chosen}
        if left != expected:
            raise Failed(f"held after the commit: {sorted(left)}, not {sorted(expected)}")
        if whole:
            self.marks.clear()  # the next command starts another draft
        else:
            self.see()

    def ledger(self):
        entries = []
        for d in json.loads(self.call("drafts", "--json").stdout)["drafts"]:
            entries += json.loads(self.call("-d", d["name"], "log", "--json").stdout)["entries"]
        return entries

    def see(self):
        """The agent's tree is what it was."""
        before = self.view
        self.run([])
        self.differ(before, self.view, "the agent's tree")

    def undo(self):
        if not self.commits:
            return
        number, before, after, paths, draft = self.commits[-1]
        # For another draft, which may have touched any of it, this would be drift.
        if self.draft() not in (None, draft):
            return
        self.commits.pop()
        if {p: v for p, v in self.real.items() if p != "host"} != \
                {p: v for p, v in after.items() if p != "host"}:
            raise Failed("the real tree changed by itself")
        held = {c["path"] for c in self.rows()} | {c["from"] for c in self.rows() if c["from"]}
        self.call("undo", str(number))
        self.real = self.look()
        host = self.real["host"]
        self.differ({**before, "host": host}, self.real, "the real tree after an undo")
        view = self.view
        if self.rows() or held:
            self.run([])
            for path in set(view) | set(self.view):
                touched = any(path == h or path.startswith(h + "/") for h in held)
                undone = any(path == p or path.startswith(p + "/") or p.startswith(path + "/")
                             for p in set(before) | set(after)
                             if before.get(p) != after.get(p))
                if touched or undone:
                    continue
                if view.get(path) != self.view.get(path):
                    raise Failed(f"an undo of {sorted(paths)} changed {path} for the agent: "
                                 f"{view.get(path)} became {self.view.get(path)}")
        else:
            self.view = dict(self.real)

    def rollback(self):
        marks = [m for d, m in self.marks if d == self.draft()]
        if not marks:
            return
        mark = self.random.choice(marks)
        tree = dict(self.marks[(self.draft(), mark)])
        self.call("rollback", mark)
        tree["host"] = self.real["host"]
        self.view = tree
        self.see()

    def discard(self):
        rows = self.rows()
        plain = [c for c in rows if not c["from"] and c["type"] == "file"
                 and c["kind"] in ("modified", "mode")
                 and c["path"] not in ("b", "linked")]  # one file, two names
        if not plain or any(c["from"] or c["type"] != "file" for c in rows):
            return
        chosen = self.random.choice(plain)["path"]
        # 4: it goes only with a directory that was moved over another one.
        if self.call("discard", "-y", chosen, codes=(0, 4)).returncode:
            return
        if len(rows) == 1:
            self.view[chosen] = self.real[chosen]
            return
        left = {c["path"] for c in self.rows()}
        if left != {c["path"] for c in rows} - {chosen}:
            raise Failed(f"held after a discard of {chosen}: {sorted(left)}")
        self.view[chosen] = self.real[chosen]
        self.see()

    def kill(self):
        drafts = json.loads(self.call("drafts", "--json").stdout)["drafts"]
        for d in drafts:
            if d["daemon"]:
                os.kill(d["daemon"], 9)
        self.log.append("kill -9")
        if self.rows():
            self.see()

    def carry(self):
        """The draft as a file, taken over a copy of the tree with another state."""
        draft = self.draft()
        if not draft:
            return
        place = os.path.dirname(self.top)
        there = os.path.join(place, "there")
        bundle = os.path.join(place, "bundle")
        shutil.rmtree(there, ignore_errors=True)
        os.makedirs(f"{there}/state")
        subprocess.run(["cp", "-a", self.top, f"{there}/w"], check=True)
        self.call("export", bundle)
        env = {**os.environ, "XDG_STATE_HOME": f"{there}/state"}

        def both(*argv):
            at = subprocess.run([self.program, *argv], cwd=f"{there}/w", env=env,
                                capture_output=True, text=True, check=False)
            if at.returncode:
                raise Failed(f"there: exit {at.returncode}: {' '.join(argv)}: {at.stderr}")
            return at.stdout, self.call(*argv).stdout if argv[0] != "import" else ""

        both("import", bundle)
        ours, theirs = (json.loads(t) for t in both("status", "--json"))
        if ours["digest"] != theirs["digest"]:
            raise Failed(f"another change set there: {ours['changes']}, not {theirs['changes']}")
        marks = [m for d, m in self.marks if d == draft]
        for mark in marks[:1] + marks[len(marks) // 2:][:1]:
            a, b = both("diff", "--no-pager", "--from", mark)
            if a != b:
                raise Failed(f"another diff from {mark} there: {a}, not {b}")

    def step(self):
        action = self.random.choice([self.edit] * 6 + [self.commit] * 3 + [
            self.undo, self.rollback, self.discard, self.kill, self.host_edit])
        self.log.append(f"--- {action.__name__}")
        action()
        self.differ(self.real, self.look(), "the real tree, which nobody changed")

    def differ(self, wanted, got, what):
        lines = [f"{p}: {wanted.get(p)} is {got.get(p)}" for p in sorted(set(wanted) | set(got))
                 if wanted.get(p) != got.get(p)]
        if lines:
            raise Failed(f"{what}:\n  " + "\n  ".join(lines))


def main(program, place, seed, steps):
    print(f"seed {seed}, {steps} steps")
    shutil.rmtree(place, ignore_errors=True)
    life = Life(program, place, int(seed))
    try:
        for step in range(int(steps)):
            life.step()
            # All that comes after needs what it must not take.
            if step % 5 == 3:
                life.call("gc")
            if step % 8 == 7:
                life.carry()
        life.call("log", "--verify")
    except Failed as failed:
        print("\n".join("  " + line for line in life.log[-int(os.environ.get("LOG", 40)):]))
        print(f"FAILED: {failed}")
        return 1
    finally:
        for d in json.loads(life.call("drafts", "--json").stdout)["drafts"]:
            life.call("rm", "-y", d["name"], codes=(0, 1, 2, 3, 70))
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
