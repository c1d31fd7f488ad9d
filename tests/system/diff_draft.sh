#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# `status` and `diff` of a real draft: the patch gives the draft's tree, risks
# are named, marks can be compared, and nothing of the tree is run or obeyed.
. "$(dirname "$0")/lib.sh" || exit 1
needs git jq
needs_fuse

workspace
mkdir -p src old
printf 'one\ntwo\nthree\n' >src/a.txt
for i in 1 2 3; do echo "file $i" >old/f$i; done
git add -A && git -c user.name=t -c user.email=t@t commit -qm base
echo 'not in git' >precious
cp -a . "$T/base"

sl run --quiet -- sh -c '
  printf "one\nTWO\nthree\n" >src/a.txt
  mv old new
  echo changed >new/f2
  rm precious
  touch src/b; rm src/b; touch README.md
  printf "x\0y" >blob'
sl run --quiet -- sh -c '
  mkdir -p .vscode .git/hooks
  echo "{}" >.vscode/tasks.json
  printf "#!/bin/sh\ntouch '"$T"'/pwned\n" >.git/hooks/post-checkout
  chmod +x .git/hooks/post-checkout
  git config core.fsmonitor "touch '"$T"'/pwned"
  printf "if (admin\342\200\256 \342\201\246) {}\n" >t.c
  printf "rm -rf /\rsafe line\n" >c.sh
  echo x >"$(printf "a\033[2K\rsafe")"'

sl status >"$T/status" 2>/dev/null
LC_ALL=C grep -qP '[\x00-\x08\x0b-\x1f\x7f]|\xc2[\x80-\x9f]' "$T/status" &&
  fail 'status has control characters'
grep -q 'U+202E' "$T/status" || fail 'the bidirectional control is not named'
for danger in 'precious.*danger deletion' 'tasks.json.*danger editor-task' \
  'post-checkout.*danger git-hook' 'danger git-config.*core.fsmonitor'; do
  grep -q "$danger" "$T/status" || fail "not in status: $danger"
done
grep -q 'src/b\|README' "$T/status" && fail 'no net change is listed as one'

sl status --json >"$T/json"
same 'renamed old' "$(jq -r '.changes[] | select(.path == "new") |
  .kind + " " + .from' "$T/json")" 'the moved directory'
same 1 "$(jq '[.changes[] | select(.path == "precious")][0].command' \
  "$T/json")" 'the command that deleted it'
same "$(jq -r .digest "$T/json")" "$(sl status --json | jq -r .digest)" 'digest'

sl diff >"$T/patch"
cp -a "$T/base" "$T/applied"
(cd "$T/applied" && git apply --whitespace=nowarn --binary "$T/patch")
same changed "$(cat "$T/applied/new/f2")"
same TWO "$(sed -n 2p "$T/applied/src/a.txt")"
[ ! -e "$T/applied/precious" ] && [ ! -e "$T/applied/old" ] ||
  fail 'a deletion or a move is not in the patch'
cmp <(printf 'x\0y') "$T/applied/blob" || fail 'the binary is not the same'

# Between marks: only the second command's.
sl diff --from @2 --name-status >"$T/second"
grep -q 't.c' "$T/second" || fail 'the second command is not told'
grep -q 'src/a.txt\|f2' "$T/second" && fail 'the first command is told as well'

exits 1 sl diff --exit-code >/dev/null
[ ! -e "$T/pwned" ] || fail 'a command out of the tree was run'
same 'not in git' "$(cat precious)" 'the real tree'
