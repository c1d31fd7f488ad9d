#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Marks: snapshot, rollback, diff between them, cat, fork, discard.
. "$(dirname "$0")/lib.sh" || exit 1
needs jq strace
needs_fuse

timeline() {
  sl run --quiet -- sh -c 'echo one >one'
  sl snapshot -m green >/dev/null
  exits 2 sl snapshot -m green
  exits 2 sl snapshot -m '@1'
  sl run --quiet -- sh -c 'echo two >two; rm one'
  same "$(printf 'D\tone\nA\ttwo')" "$(sl diff --from green --name-status)"
  same "$(printf 'A\tone')" "$(sl diff --from @1 --to @1. --name-status)"
  same one "$(sl cat @1.:one)"
  exits 2 sl cat one
  exits 2 sl cat nosuch:one
  exits 2 sl rollback nosuch

  sl fork other >/dev/null
  sl rollback green
  same one "$(sl cat one)"
  exits 2 sl cat two
  sl run --quiet -- sh -c 'test -e one && test ! -e two'
  # Later marks stay valid.
  sl rollback @2.
  same two "$(sl cat two)"
  # The fork has its own life and is not the current one.
  same two "$(sl -d other cat two)"
  same false "$(sl drafts --json | jq '.drafts[] | select(.name == "other").current')"
  sl -d other run --quiet -- sh -c 'echo theirs >two'
  same two "$(sl cat two)"
  same theirs "$(sl -d other cat two)"
  sl switch other
  same theirs "$(sl cat two)"

  sl run --quiet -- sh -c 'echo x >>README.md; mkdir -p deep/er; echo y >deep/er/z'
  exits 1 sl discard deep </dev/null
  sl discard -y deep README.md
  same "$(printf 'A\ttwo')" "$(sl diff --name-status)"
  sl run --quiet -- sh -c 'test ! -e deep && ! grep -q x README.md'
  # Deletions and moves, too.
  sl run --quiet -- sh -c 'rm README.md; mv src elsewhere; echo 2 >elsewhere/new'
  sl discard -y README.md elsewhere
  same "$(printf 'A\ttwo')" "$(sl diff --name-status)"
  sl run --quiet -- sh -c 'grep -q hello README.md && test -e src/main.c && test ! -e elsewhere'
  exits 2 sl discard -y nothing-here
  sl discard -y
  same discarded "$(sl drafts --json | jq -r '.drafts[] | select(.name == "other").state')"
  exits 1 sl rm "$(sl drafts --json | jq -r '.drafts[] | select(.state == "open").name')" </dev/null
  sl gc
  same 1 "$(sl drafts --json | jq '.drafts | length')"
  sl rm -y "$(sl drafts --json | jq -r '.drafts[0].name')"
  same 0 "$(sl drafts --json | jq '.drafts | length')"
}

# The draft and its record are gone, the commits and their undo are not.
log_after_gc() {
  local name
  sl run --quiet -- sh -c 'echo one >one'
  sl commit -a -y >/dev/null
  name=$(sl drafts --json | jq -r '.drafts[0].name')
  sl log --commits --json | jq -e ".entries | length == 1 and .[0].draft == \"$name\"" >/dev/null ||
    fail "while the draft is there: $(sl log --commits --json)"
  # Its daemon still waits for a next command.
  sl drafts --json | jq -e '.drafts[0].daemon | type == "number"' >/dev/null ||
    fail "no daemon: $(sl drafts --json)"
  prints "would remove draft '$name'" sl gc --dry-run
  prints "removed draft '$name'" sl gc
  same 0 "$(sl drafts --json | jq '.drafts | length')"
  sl log --json | jq -e '.entries | length == 1 and (.[0] | .n == 1 and .kind == "commit"
    and .commit == 1 and .paths == ["one"] and (.time | type) == "string")' >/dev/null ||
    fail "log has no commit: $(sl log --json)"
  prints 'commit 1  1 path one' sl log
  sl undo >/dev/null
  test ! -e one || fail 'the undo did nothing'
  sl log --json | jq -e '[.entries[].kind] == ["commit", "undo"] and .entries[1].undoes == 1' >/dev/null ||
    fail "log has no undo: $(sl log --json)"
  # A new draft's log is its own; the others' commits are where undo's hint says.
  sl run --quiet -- sh -c 'echo two >two'
  sl log --json | jq -e '[.entries[].kind] == ["run"]' >/dev/null || fail "$(sl log --json)"
  sl log --commits --json | jq -e '[.entries[].commit] == [1, 2]' >/dev/null ||
    fail "$(sl log --commits --json)"
  same 1 "$(sl log --commits -n 1 | wc -l)"
  exits 2 sl log --commits --verify
}

# The journal is not read for a mark: its cost is that of an empty draft.
marks() {
  strace -f -o "$HOME/trace" "$STOPLOG" snapshot >/dev/null
  wc -l <"$HOME/trace"
}
mark_is_cheap() {
  sl run --quiet -- sh -c 'echo 1 >f1'
  few=$(marks)
  sl run --quiet -- sh -c 'mkdir many; cd many; for i in $(seq 3000); do echo $i >$i; done'
  many=$(marks)
  [ "$many" -le $((few + 12)) ] || fail "a mark of 3000 files: $many calls, not $few"
}

both_modes timeline
both_modes log_after_gc
both_modes mark_is_cheap
