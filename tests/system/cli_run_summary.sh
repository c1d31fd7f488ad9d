#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What a person is told after a run, on a terminal and not; and what stoplog says
# to one that is started inside of its own jail.
. "$(dirname "$0")/lib.sh" || exit 1
needs git jq python3
needs_fuse

on_terminal() {
  python3 - "$STOPLOG" "$@" <<'PY'
import os, pty, sys
pid, terminal = pty.fork()
if pid == 0:
    os.environ["TERM"] = "xterm"
    os.execv(sys.argv[1], sys.argv[1:])
said = b""
while True:
    try:
        piece = os.read(terminal, 4096)
    except OSError:
        break
    if not piece: break
    said += piece
sys.stdout.buffer.write(said.replace(b"\r", b""))
sys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
PY
}

try() {
  local work='echo x >a; rm README.md; mkdir .vscode; echo {} >.vscode/tasks.json; echo out; exit 3'
  exits 3 on_terminal run -- sh -c "$work" >"$T/said"
  # How it ended, time and memory; counts; dangers and deletions by name; what
  # to do next.
  grep -Eq '^.*command 1 of draft [a-z-]+: exit 3, [0-9.]+m?s, [0-9.]+[KM] of memory$' "$T/said" ||
    fail "how it ended: $(cat "$T/said")"
  sed 's/\x1b\[[0-9;]*m//g' "$T/said" >"$T/plain"
  grep -q '^held: 3 changes (2 added, 1 deleted), 1 danger$' "$T/plain" || fail "$(cat "$T/plain")"
  grep -q '^  A  .vscode/tasks.json .*danger editor-task' "$T/plain" || fail 'no danger'
  grep -q '^  D  README.md' "$T/plain" || fail 'no deletion'
  grep -q 'next: `stoplog review`' "$T/plain" || fail 'no next step'
  [ "$(grep -c . "$T/plain")" -le 8 ] || fail "long: $(cat "$T/plain")"
  # It begins on a line of its own.
  on_terminal run -- printf 'no end' >"$T/open"
  grep -qx 'no end' "$T/open" && grep -q '^.*command [0-9]* of draft' "$T/open" ||
    fail "behind the command's text: $(cat "$T/open")"
  on_terminal run -- printf 'an end\n' >"$T/open"
  not grep -qx '' "$T/open"
  # To a pipe the command's stdout is its own; the words are the same every
  # time, without colours or advice.
  exits 3 sl run -- sh -c 'echo out; exit 3' >"$T/out" 2>"$T/err"
  same out "$(cat "$T/out")"
  LC_ALL=C grep -q $'\033' "$T/err" && fail 'colours in a pipe'
  grep -q 'next:' "$T/err" && fail 'advice in a pipe'
  exits 3 sl run -- sh -c 'echo out; exit 3' >/dev/null 2>"$T/again"
  steady() { sed -E 's/command [0-9]+/command N/; s/exit 3, .*/exit 3/' "$1"; }
  same "$(steady "$T/err")" "$(steady "$T/again")" 'stable'
  exits 3 sl run --quiet -- sh -c 'exit 3' >"$T/out" 2>&1
  same '' "$(cat "$T/out")" '--quiet'

  # Inside of the jail.
  mkdir "$T/bin-$MODE" && cp "$STOPLOG" "$T/bin-$MODE/stoplog"
  inside() { sl run --quiet --bind-ro "$T/bin-$MODE" -- "$T/bin-$MODE/stoplog" "$@"; }
  exits 5 inside run true 2>"$T/err"
  grep -q 'already inside of stoplog' "$T/err" || fail "$(cat "$T/err")"
  for words in status commit review; do
    inside "$words" >"$T/err" 2>&1 || true
    grep -q 'hint: this is the inside of a stoplog jail' "$T/err" || fail "$words: $(cat "$T/err")"
  done
  exits 5 inside doctor >"$T/out" 2>&1
  head -1 "$T/out" | grep -q '^fail inside ' || fail "$(cat "$T/out")"
  inside version >/dev/null

  # The policy on a command, a path and a host.
  sl policy check make >"$T/out"
  grep -q '^command make: runs in the jail' "$T/out" || fail "$(cat "$T/out")"
  grep -q 'no network' "$T/out" || fail "$(cat "$T/out")"
  sl policy check src/main.c >"$T/out"
  grep -q '^path src/main.c: readable; changes are held' "$T/out" || fail "$(cat "$T/out")"
}
# A known agent without a network rule is told of it before it runs.
agent() {
  printf '#!/bin/sh\necho working\n' >claude
  chmod +x claude
  sl run -- ./claude 2>"$T/said" >/dev/null
  grep -q '^hint: .*no network.*--net host' "$T/said" || fail "$(cat "$T/said")"
  sl run --net host -- ./claude 2>"$T/said" >/dev/null
  not grep -q 'no network' "$T/said"
  same '' "$(sl run --quiet -- ./claude 2>&1 >/dev/null)" quiet
  sl run -- sh -c true claude 2>"$T/said"
  not grep -q 'no network' "$T/said"
}

both_modes try
both_modes agent
