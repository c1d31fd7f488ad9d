#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Names and contents that a terminal would obey, or that imitate a line of ours:
# on a terminal no command prints them as they are.
# ctest: timeout 300
. "$(dirname "$0")/lib.sh" || exit 1
needs script python3
needs_fuse

# COMMAND on a terminal. What it prints is on one of its own lines, and has
# nothing but letters, colours apart, which are off.
plain() {
  local at=$T/screen
  TERM=xterm script -qec "'$STOPLOG' --color never $*" /dev/null </dev/null >"$at" 2>&1 || true
  [ -z "${SHOW:-}" ] || { echo "--- $*"; cut -c1-200 "$at" | head -8 | cat -v; }
  SHOWN=$((SHOWN + 1))
  python3 - "$at" "$*" <<'P' || RAW=$((RAW + 1))
import re, sys
text = open(sys.argv[1], "rb").read().replace(b"\r\n", b"\n")
odd = re.search(rb".*([\x00-\x08\x0b-\x1f\x7f]|\xc2[\x80-\x9f]).*|^FORGED.*", text, re.M)
if odd: sys.exit("printed as it is by %s: %r" % (sys.argv[2], odd[0][:200]))
P
}

names() {
  local ESC CSI
  ESC=$(printf '\033') CSI=$(printf '\302\233')
  export STOPLOG_PAGER=cat SHOWN=0 RAW=0
  sl run --quiet -- sh -c "
    for n in 'a${ESC}[31m' 'b${CSI}2J' 'c
FORGED  take README.md'; do
      mkdir -p \"dir \$n\"
      printf '%s\n' \"\$n\" >\"\$n\"
      echo x >\"dir \$n/\$n\"
      ln -s \"\$n\" \"link \$n\"
      ln \"\$n\" \"hard \$n\"
      mkfifo \"fifo \$n\"
    done
    chmod 755 README.md; git mv src/main.c 'src/\${n}'; git -c user.name=t -c user.email=t commit -qm \"\$n\" -a"
  sl run --quiet -- sh -c "exit 3" "a${ESC}[31m" "c
FORGED" || true
  sl run --quiet -- "./a${ESC}[31m${CSI}" 2>"$T/err" || true
  not grep -q "[$ESC]\|$CSI" "$T/err"
  sl snapshot -m one >/dev/null
  for command in status diff 'diff --stat' 'diff --name-status' 'diff .git/' log 'log --verify' \
    drafts ps 'approve --all' 'commit --dry-run' 'commit -a --danger --dry-run' 'status --json' \
    'diff --json' 'log --json' 'commit -y' 'show 1' 'show 1 --json' 'log --commits' undo 'show 2' \
    "reject 'a${ESC}[31m' --reason 'no${ESC}[31m'" status "discard -y 'b${CSI}2J'" \
    'commit -a --danger -y' 'show 3' 'undo 3 --json' 'rollback one --json' 'policy show' log; do
    plain "$command"
  done
  # Drift, of what is there as well as of what is new.
  sl run --quiet -- sh -c 'for f in ?*; do test ! -f "$f" || echo mine >>"$f"; done'
  for f in [abc]*; do test ! -f "$f" || echo other >>"$f"; done
  echo other >"c
FORGED  take README.md"
  for command in status 'commit -a --danger -y' 'commit -a --danger -y --merge' diff drafts; do
    plain "$command"
  done
  same 0 "$RAW" 'commands that print such names'
  [ "$SHOWN" -ge 30 ] || fail "only $SHOWN commands"
}
both_modes names
