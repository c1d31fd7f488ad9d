#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Every command is a point to go back to: nothing of it is dirty when it has
# ended, a mounted view shows exactly the tree of a mark, and forks live side by
# side over one workspace.
. "$(dirname "$0")/lib.sh" || exit 1
needs jq python3
needs_fuse

# Stores through a mapping, neither synced nor unmapped, by the command and by a
# process that it leaves behind: the mark of its end has them all.
nothing_dirty() {
  sl run --quiet -- python3 -c '
import mmap, os, signal, time
def store(name, text):
    with open(name, "wb") as f: f.truncate(1 << 20)
    fd = os.open(name, os.O_RDWR)
    m = mmap.mmap(fd, 1 << 20)
    for at in range(0, 1 << 20, 4096): m[at:at + len(text)] = text
    return m
r, w = os.pipe()
if os.fork() == 0:
    kept = store("behind", b"behind")
    os.write(w, b"x")
    time.sleep(1000)
os.read(r, 1)
kept = store("mine", b"mine")
os.kill(os.getpid(), signal.SIGKILL)' || true
  sl run --quiet -- sh -c 'echo later >mine; echo later >behind'
  sl cat @1.:mine >"$T/mine-$MODE"
  sl cat @1.:behind >"$T/behind-$MODE"
  python3 - "$T/mine-$MODE" mine "$T/behind-$MODE" behind <<'PY'
import sys
for name, text in zip(sys.argv[1::2], sys.argv[2::2]):
    data = open(name, 'rb').read()
    assert len(data) == 1 << 20, (text, len(data))
    for at in range(0, 1 << 20, 4096):
        assert data[at:at + len(text)] == text.encode(), (text, at)
PY
}

# As a program in the view sees it, with all that the kernel remembers.
tree_of() {
  (cd "$1" && find . -path ./.git -prune -o -printf '%P %y %m %n %s\n' | sort &&
    find . -path ./.git -prune -o -type f -print0 | sort -z | xargs -0 sha256sum) |
    sha256sum
}

in_a_mount() {
  mkdir -p "$T/view-$MODE"
  view=$(sl mount "$T/view-$MODE")
  sl snapshot -m zero >/dev/null
  zero=$(tree_of "$view")
  # Enough that the kernel is told of all names at once, where it can be.
  python3 - "$view" <<'PY'
import os, sys
for n in range(3000):
    d = f'{sys.argv[1]}/d{n // 100}'
    os.makedirs(d, exist_ok=True)
    with open(f'{d}/f{n}', 'w') as f: f.write(f'one {n}\n')
PY
  echo one >"$view/README.md"
  sl snapshot -m one >/dev/null
  one=$(tree_of "$view")
  (cd "$view" && for n in 0 5 9; do mv d$n moved$n; rm -r d1$n; done
    echo two >README.md && ln d20/f2000 linked && echo two >d20/f2001 && rm -r src)
  sl snapshot -m two >/dev/null
  two=$(tree_of "$view")
  [ ! -e "$view/src" ] && [ ! -e "$view/nowhere" ] # known to be absent
  exec 5<"$view/d20/f2001"
  for mark in one zero two one two zero one; do
    sl rollback "$mark" 2>"$T/said-$MODE" >/dev/null
    grep -q 'programs that have files open there' "$T/said-$MODE" ||
      fail "no word of the view: $(cat "$T/said-$MODE")"
    same "${!mark}" "$(tree_of "$view")" "$mark in the view"
  done
  exec 5<&-
  # The same from the journal, after the daemon died.
  daemon=$(sl drafts --json | jq '.drafts[0].daemon')
  kill -KILL "$daemon"
  view=$(sl mount "$T/view-$MODE" 2>/dev/null)
  for mark in two zero one; do
    sl rollback "$mark" >/dev/null 2>&1
    same "${!mark}" "$(tree_of "$view")" "$mark from the journal"
  done
  same 'one zero two one two zero one two zero one' "$(sl log --json |
    jq -r '.entries[] | select(.kind == "rollback").to' | xargs)"
  sl log --verify >/dev/null
  sl unmount
}

# Nothing is lost by going back, not even what no mark has seen.
unmarked() {
  sl run --quiet -- sh -c 'echo one >a'
  mkdir -p "$T/edit-$MODE"
  view=$(sl mount "$T/edit-$MODE")
  echo by hand >"$view/hand"
  sl rollback @1 2>"$T/said-$MODE" >/dev/null
  grep -q "kept as 'before-1'" "$T/said-$MODE" || fail "$(cat "$T/said-$MODE")"
  [ ! -e "$view/hand" ] && [ ! -e "$view/a" ]
  # Nothing new: no other one.
  sl rollback @1. 2>/dev/null >/dev/null
  same one "$(cat "$view/a")"
  sl rollback before-1 2>/dev/null >/dev/null
  same 'by hand' "$(cat "$view/hand")"
  exits 2 sl rollback before-2 2>/dev/null
  # The daemon dies over an edit.
  echo more >>"$view/hand"
  kill -KILL "$(sl drafts --json | jq '.drafts[0].daemon')"
  sl rollback @1 2>"$T/said-$MODE" >/dev/null
  grep -q "kept as 'before-2'" "$T/said-$MODE" || fail "$(cat "$T/said-$MODE")"
  same "$(printf 'by hand\nmore')" "$(sl cat before-2:hand)"
  same '' "$(sl diff --name-status)"
  sl log --verify >/dev/null
  sl mount "$T/edit-$MODE" >/dev/null 2>&1 # in place of the dead one
  sl unmount
}

# Three drafts of one workspace at work in the same moment.
side_by_side() {
  sl run --quiet -- sh -c 'echo base >shared; echo base >apart'
  mkfifo "$T/gate-$MODE"
  sl fork left >/dev/null
  sl fork right >/dev/null
  main=$(sl drafts --json | jq -r '.drafts[] | select(.current).name')
  for name in left right "$main"; do
    sl -d "$name" run --quiet -- sh -c "echo $name >>README.md; echo $name >only-$name
      : >running-$name; while [ ! -e go ]; do sleep 0.05; done; cat only-*" \
      >"$T/out-$name-$MODE" 2>&1 &
  done
  all_run() {
    local name
    for name in left right "$main"; do
      [ "$(sl -d "$name" ps --json | jq '.commands | length')" = 1 ] &&
        sl -d "$name" diff --name-status | grep -q "running-$name" || return 1
    done
  }
  eventually all_run
  touch go # in the real tree: each of them sees it
  wait
  for name in left right "$main"; do
    same "$name" "$(cat "$T/out-$name-$MODE")" 'sees its own alone'
    same "hello $name" "$(echo $(sl -d "$name" cat README.md))"
  done
  rm go
  # A diff across drafts, at their ends and at marks.
  same "$(printf 'D\tonly-left\nA\tonly-right\nD\trunning-left\nA\trunning-right')" \
    "$(sl diff --name-status --from left: --to right: | grep -v README.md)"
  sl -d right diff --from left: README.md >"$T/across-$MODE"
  grep -qx -- '-left' "$T/across-$MODE" && grep -qx -- '+right' "$T/across-$MODE" ||
    fail "$(cat "$T/across-$MODE")"
  same '' "$(sl diff --from left:@1. --to right:@1.)"
  same "$(sl -d left diff --from @1. --to @2.)" "$(sl diff --from right:@1. --to left:)"
  exits 2 sl diff --from nobody: 2>/dev/null
  exits 2 sl diff --from left:@99 2>/dev/null
  # `drafts` names what two of them touch.
  same 'README.md apart shared' "$(sl drafts --json |
    jq -r '.drafts[] | select(.name == "left").overlaps[] |
      select(.draft == "right").paths[]' | sort | xargs)"
  # Committing one: the others drifted where they overlap, and only there.
  sl -d left commit -a -y >/dev/null
  for name in right "$main"; do
    same 'README.md apart shared' "$(sl -d "$name" status --json |
      jq -r '.changes[] | select(.drift != null).path' | sort | xargs)" "$name"
    same '' "$(sl -d "$name" status --json | jq -r '.changes[] |
      select(.path == "only-left" or .path == "running-left").path')"
  done
}

both_modes nothing_dirty
both_modes in_a_mount
both_modes unmarked
both_modes side_by_side
