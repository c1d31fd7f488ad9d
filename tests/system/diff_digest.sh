#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The digest that a person approves is the one that docs/FORMAT.md describes: it
# is reckoned again, by another program, from the tree before and the tree after
# a commit of all of it. Twice the same work has the same digest, another byte,
# mode or name has another.
. "$(dirname "$0")/lib.sh" || exit 1
needs git python3 jq setfattr
needs_fuse

reckon() { # reckon BEFORE AFTER JSON
  python3 - "$@" <<'PY'
import hashlib, json, os, stat, struct, subprocess, sys
before, after, told = sys.argv[1:]
told = json.load(open(told))
def form(*fields):
    out = hashlib.sha256()
    for field in fields:
        if isinstance(field, str): field = os.fsencode(field)
        out.update(struct.pack("<Q", len(field)) + field)
    return out.hexdigest()
def state(root, path):
    full = os.path.join(root, path)
    st = os.lstat(full)
    link, file = stat.S_ISLNK(st.st_mode), stat.S_ISREG(st.st_mode)
    content = ""
    if link: content = hashlib.sha256(os.fsencode(os.readlink(full))).hexdigest()
    if file: content = hashlib.sha256(open(full, "rb").read()).hexdigest()
    names = sorted(os.listxattr(full, follow_symlinks=False))
    out = ["120000" if link else f"{st.st_mode:06o}", f"{st.st_uid}:{st.st_gid}",
           "", content, str(len(names))]
    for name in names: out += [name, os.getxattr(full, name, follow_symlinks=False)]
    return out
def inode(root, path):
    st = os.lstat(os.path.join(root, path))
    return st.st_ino if st.st_nlink > 1 and stat.S_ISREG(st.st_mode) else None
def change(kind, path, source=None, link=None):
    sides = [["absent"], ["absent"]]
    if kind != "added": sides[0] = state(before, source or path)
    if kind != "deleted": sides[1] = state(after, path)
    return form("stoplog change 1", kind, path, "from" if source else "", source or "",
                "link" if link else "", link or "", *sides[0], *sides[1])
order = lambda path: path.replace("/", "\0")
def git(root, *argv):
    return subprocess.run(["git", "-C", root, *argv], stdout=subprocess.PIPE,
                          check=True).stdout
def refs(root):
    said = git(root, "for-each-ref", "--format=%(refname) %(objectname)").decode()
    return dict(line.split(" ") for line in said.splitlines())
def parts(root):
    top = os.path.join(root, ".git")
    return {os.path.relpath(os.path.join(at, name), top)
            for at, dirs, names in os.walk(top) for name in dirs + names}
def part(name):
    sides = [state(root, ".git/" + name) if name in parts(root) else None
             for root in (before, after)]
    if sides[0] == sides[1]: return ""
    kind = "added" if not sides[0] else "deleted" if not sides[1] else "modified"
    said = " ".join(sides[1][:2]) if sides[1] else "absent"
    return f"{kind} {len(name)} {name} {said} {sides[1][3] if sides[1] else ''}\n"
def meaning():
    entries = hashlib.sha256()
    for entry in git(after, "ls-files", "--stage", "-z").split(b"\0")[:-1]:
        head, path = entry.split(b"\t")
        mode, name, stage = head.decode().split(" ")
        entries.update(f"{len(path)} {mode} {name} {stage} ---\n".encode() + path)
    lines = ""
    for name in sorted(parts(before) | parts(after), key=order):
        file = not os.path.isdir(os.path.join(after, ".git", name))
        if name == "index": lines += f"index {entries.hexdigest()}\n"
        elif not (file and (name in ("HEAD", "packed-refs") or name.startswith("refs/"))):
            lines += part(name)
    old, new = refs(before), refs(after)
    for name in sorted(old | new):
        if old.get(name) != new.get(name):
            lines += f"ref {len(name)} {name} {old.get(name, '-')} {new.get(name, '-')}\n"
    return hashlib.sha256(lines.encode()).hexdigest()
rows = sorted((c for c in told["changes"]), key=lambda c: order(c["path"]))
fields, first = ["stoplog change set 1"], {}
for row in rows:
    path = row["path"]
    if path == ".git/":
        fields.append(form("stoplog change 1", row["kind"], ".git", "", "", "", "",
                           "git", meaning()))
        continue
    number = inode(after, path) if row["kind"] != "deleted" else None
    link = first.setdefault(number, path) if number else None
    fields.append(change(row["kind"], path, row["from"], link if link != path else None))
# Directories that come or go with what is in them are no rows.
def directories(root):
    return {os.path.relpath(os.path.join(at, name), root)
            for at, names, _ in os.walk(root) for name in names
            if not os.path.islink(os.path.join(at, name))}
listed = {row["path"] for row in rows}
inside = lambda path, tops: any((path + "/").startswith(top + "/") for top in tops)
moved = [row for row in rows if row["kind"] == "renamed" and row["type"] == "dir"]
skip = lambda path: path == ".git" or path.startswith(".git/") or path in listed
came = directories(after) - directories(before)
went = directories(before) - directories(after)
came = {p for p in came if not skip(p) and not inside(p, [r["path"] for r in moved])}
went = {p for p in went if not skip(p) and not inside(p, [r["from"] for r in moved])}
fields.append("directories")
fields += [change("added" if path in came else "deleted", path)
           for path in sorted(came | went, key=order)]
print("sha256:" + form(*fields))
PY
}

try() {
  mkdir -p old/deep kept gone/away build
  printf 'one\ntwo\n' >text
  printf 'x\0y' >blob
  printf 'a' >twin && ln twin twin2
  ln -s text link
  echo moved >old/f && echo deep >old/deep/f
  echo lost >gone/away/f
  echo mode >tool && echo type >turns
  echo same >touched
  git add -A && git commit -qm base
  echo built >build/out
  rm -rf "$T/before" && cp -a . "$T/before"
  cat >"$T/work" <<'EOF'
printf 'one\nTWO\n' >text
printf 'x\0z' >blob
printf 'b' >twin
ln -sfn kept link
mv old new && echo other >new/deep/f
rm -r gone
chmod 755 tool
rm turns && mkdir turns && echo f >turns/f
touch touched && echo x >touched.tmp && rm touched.tmp
mkdir -p fresh/er empty && echo new >fresh/er/f && ln fresh/er/f fresh/again
echo mine >"$(printf 'caf\303\251 \t"')"
mv kept/../README.md READYOU.md
echo o >made.o && rm build/out
setfattr -n user.note -v hello tool
EOF
  sl run --quiet -- sh -c "$(cat "$T/work")"
  sl status --json >"$T/one"
  sl run --quiet --new -- sh -c "$(cat "$T/work")"
  same "$(jq -r .digest "$T/one")" "$(sl status --json | jq -r .digest)" 'again'
  for more in 'printf 1 >>text' 'chmod 700 tool' 'ln -sfn text link' \
    'mv fresh/er/f fresh/er/g' 'setfattr -n user.note -v hellO tool' \
    'chmod 700 fresh' 'rm empty -r'; do
    sl run --quiet --new -- sh -c "$(cat "$T/work"); $more"
    [ "$(jq -r .digest "$T/one")" != "$(sl status --json | jq -r .digest)" ] ||
      fail "the digest does not know of: $more"
  done
  sl run --quiet --new -- sh -c "$(cat "$T/work")"
  sl status --json >"$T/one"
  sl commit -a -y --danger >/dev/null 2>&1
  same "$(jq -r .digest "$T/one")" "$(reckon "$T/before" . "$T/one")" \
    'the digest of docs/FORMAT.md'
}

# A commit, a branch and an object of git's: by their meaning.
by_git() {
  rm -rf "$T/before" && cp -a . "$T/before"
  sl run --quiet -- sh -c 'echo more >>README.md; echo new >added; git add added
    git -c user.name=t -c user.email=t@t commit -qam "in the draft"
    git branch side; git branch -d side; git branch other; echo x | git hash-object -w --stdin'
  sl status --json >"$T/one"
  jq -e '.changes[] | select(.path == ".git/")' "$T/one" >/dev/null || fail 'no row of git'
  sl commit -a -y >/dev/null 2>&1
  same "$(jq -r .digest "$T/one")" "$(reckon "$T/before" . "$T/one")" \
    'the digest of a git directory'
}

both_modes try
both_modes by_git
