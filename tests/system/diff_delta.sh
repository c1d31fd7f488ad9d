#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# delta (git-delta of Debian 13; Debian 12 has none) as the pager of a diff: it
# understands what stoplog gives a pager as it understands git itself.
# tests/system/diff_scale.sh tests without delta what a pager gets.
. "$(dirname "$0")/lib.sh" || exit 1
needs git python3 delta
case $(delta --version) in
  'delta '*) ;;
  *) skip 'delta is another program' ;;
esac
needs_fuse

workspace
seq 100 >numbers
printf 'one\r\ntwo\r\n' >crlf
printf 'no newline' >end
printf 'gone\n' >gone
printf 'moved\nmoved\nmoved\nmoved\n' >from
printf '\0\1' >bytes
git add -A && git commit -qm second

cat >"$T/edit" <<'EOF'
seq 100 | sed "s/^50$/fifty\twith a tab/; s/^90$/wide 漢字 é/" >numbers
printf "one\r\nzwei\r\n" >crlf
printf "no newline at all" >end
rm gone
mv from to
printf "\0\2" >bytes
chmod +x README.md
printf "int x;\n" >"a name"
printf "int y;\n" >"$(printf "tab\tquote\"")"
ln -s README.md link
: >empty
EOF
sl run --quiet -- sh -c "$(cat "$T/edit")"

# What a program that reads git's output sees: the same files, the same lines.
cp -r "$W" "$T/other"
(
  cd "$T/other"
  sh "$T/edit"
  git add -A
  git -c core.quotePath=true diff --cached --no-ext-diff -M --color=always HEAD
) >"$T/git"
python3 - "$STOPLOG" "$T/paged" "$T/shown" <<'PY'
import os, pty, sys
program, paged, shown = sys.argv[1:]
pid, terminal = pty.fork()
if pid == 0:
    os.environ.update(TERM="xterm-256color", STOPLOG_PAGER=f"tee '{paged}' | "
        f"delta --no-gitconfig --paging=never --line-numbers --width=100 >'{shown}'")
    os.execv(program, [program, "diff"])
while True:
    try:
        if not os.read(terminal, 4096): break
    except OSError:
        break
assert os.waitpid(pid, 0)[1] == 0
PY
delta --no-gitconfig --paging=never --line-numbers --width=100 <"$T/git" >"$T/wanted"
plain() { sed 's/\x1b\[[0-9;]*[mK]//g' "$1"; }
# Files may come in another order; stoplog says a word more on some, expands tabs
# itself and shows a carriage return as what it is.
sorted() { plain "$1" | grep -v '^ *$\|^# ' | sed 's/\^M$//; s/  */ /g' | sort; }
diff <(sorted "$T/wanted") <(sorted "$T/shown") >"$T/differs" || {
  cat "$T/differs"
  fail 'delta understands it otherwise than git'
}
grep -q '⋮ 50 │' <(plain "$T/shown") || fail 'delta did not read any hunk'
