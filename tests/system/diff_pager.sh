#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What a pager of a diff gets, and which one gets it. With the colours taken off
# it is a patch that git takes: what programs such as delta read
# (tests/system/diff_delta.sh runs delta itself, where there is one).
. "$(dirname "$0")/lib.sh" || exit 1
needs git python3
needs_fuse

# Runs `stoplog diff ARG...` on a terminal, which is printed, with the
# environment of NAME=VALUE before it.
on_terminal() {
  python3 - "$STOPLOG" "$@" <<'PY'
import os, pty, sys
program, *rest = sys.argv[1:]
while rest and "=" in rest[0]:
    name, value = rest.pop(0).split("=", 1)
    os.environ[name] = value
os.environ["TERM"] = "xterm"
pid, terminal = pty.fork()
if pid == 0: os.execv(program, [program, "diff", *rest])
said = b""
while True:
    try:
        piece = os.read(terminal, 4096)
    except OSError:
        break
    if not piece: break
    said += piece
sys.stdout.buffer.write(said)
sys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
PY
}

workspace
seq 100 >numbers
printf 'gone\n' >gone
printf 'moved\nmoved\nmoved\nmoved\n' >from
printf 'no newline' >end
git add -A && git commit -qm second
cp -a "$W" "$T/applied"
sl run --quiet -- sh -c '
  seq 100 | sed "s/^50$/fifty/; s/^90$/wide 漢字 é/" >numbers
  rm gone src/main.c
  mv from to
  chmod +x .gitignore
  printf "no newline at all" >end
  echo "a line" >"a name"
  echo "a line" >"$(printf "tab\tand \"quote")"
  ln -s README.md link
  : >empty'

on_terminal STOPLOG_PAGER="cat >'$T/paged'" >"$T/said"
[ ! -s "$T/said" ] || fail "beside the pager: $(cat "$T/said")"
grep -q $'\033\\[32m' "$T/paged" || fail 'the pager got no colours'
sed 's/\x1b\[[0-9;]*m//g' "$T/paged" >"$T/plain"
LC_ALL=C grep -qaP '[\x00-\x08\x0b-\x1f\x7f]' "$T/plain" &&
  fail 'a pager gets something that a terminal would obey'
sl diff >"$T/patch"
same "$(git apply --numstat "$T/patch" | sort)" \
  "$(git apply --numstat "$T/plain" | sort)" 'what a pager can parse'
cp -a "$T/applied" "$T/wanted"
git -C "$T/wanted" apply "$T/patch"
git -C "$T/applied" apply "$T/plain"
diff -r --no-dereference -x .git "$T/wanted" "$T/applied" ||
  fail 'what a pager gets is another patch'
[ -x "$T/applied/.gitignore" ] || fail 'the mode is lost'

# Which one: STOPLOG_PAGER, else PAGER, else less; an empty one or cat is none.
# git's own is git's.
who() { on_terminal "$@" | tr -d '\r' | grep -o 'first\|second\|third\|^.*a/numbers' | head -1; }
same first "$(who STOPLOG_PAGER='echo first; cat >/dev/null' \
  PAGER='echo second; cat >/dev/null' GIT_PAGER='echo third')" STOPLOG_PAGER
same second "$(who PAGER='echo second; cat >/dev/null' GIT_PAGER='echo third')" PAGER
for none in '' cat; do
  case $(who STOPLOG_PAGER="$none" PAGER='echo second') in
    *diff*a/numbers) ;;
    *) fail "STOPLOG_PAGER='$none' is not none" ;;
  esac
done
case $(who STOPLOG_PAGER='echo first; cat >/dev/null' --no-pager) in
  *diff*a/numbers) ;;
  *) fail '--no-pager has a pager' ;;
esac
# What nobody chose is less, told to leave what fits and to keep the colours.
mkdir "$T/less"
cat >"$T/less/less" <<'EOF'
#!/bin/sh
echo "first: less $* as $LESSCHARSET"
cat >/dev/null
EOF
chmod +x "$T/less/less"
on_terminal_less() { (unset PAGER STOPLOG_PAGER LESSCHARSET; on_terminal PATH="$T/less:$PATH" "$@" | tr -d '\r'); }
same 'first: less -FRX as utf-8' "$(on_terminal_less)" 'the default'
same second "$(who PATH="$T/less:$PATH" PAGER='echo second; cat >/dev/null')" 'PAGER before less'
# Without less (a container) the diff is shown all the same.
mkdir "$T/bin"
for program in fusermount3 sh; do
  ln -s "$(command -v "$program")" "$T/bin/$program" 2>/dev/null || true
done
case $(unset PAGER; who PATH="$T/bin") in
  *diff*a/numbers) ;;
  *) fail 'without less nothing is shown' ;;
esac

# A pager that is left early ends the diff: no error, no wait for the rest.
on_terminal STOPLOG_PAGER='head -1' >"$T/said" || fail 'leaving a pager is an error'
grep -q 'stoplog:' "$T/said" && fail "$(cat "$T/said")"
# To a file there are neither pager nor colours.
STOPLOG_PAGER="cat >'$T/none'" sl diff >"$T/out"
cmp "$T/out" "$T/patch" || fail 'a file gets something else'
[ ! -e "$T/none" ] || fail 'a pager ran for a file'
