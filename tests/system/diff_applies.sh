#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What difftool prints of two trees, git applies: hostile names, types, modes,
# binaries, moved directories; and nothing of a repository is ever run.
. "$(dirname "$0")/lib.sh" || exit 1
needs git

tool=$BUILD/tests/difftool
[ -x "$tool" ] || skip 'difftool is not built'
mkdir "$T/base" "$T/draft"
cd "$T/base"

esc=$'a\033[2K\033[1A\rsafe.txt'
bytes=$'\377\376'
long=$(head -c 255 /dev/zero | tr '\0' n)
mkdir src old
printf 'one\ntwo\nthree\n' >README.md
printf 'no newline at the end' >noeol
printf 'crlf\r\nlines\r\n' >crlf.txt
: >empty
head -c 5000 /dev/urandom >blob
ln -s README.md link
printf '#!/bin/sh\n' >tool.sh
for i in 1 2 3; do echo "file $i" >old/f$i; done
cp -a . "$T/draft"

cd "$T/draft"
printf 'one\nTWO\nthree\nfour' >README.md
printf 'no newline at the end, still' >noeol
printf 'crlf\r\nother\r\n' >crlf.txt
rm empty
head -c 6000 /dev/urandom >blob
ln -sfn "$T/elsewhere" link
chmod +x tool.sh
mv old new
echo changed >new/f2
touch -- -rf "$esc" $'b\nc' 'a;touch x' "\$(id)" "$bytes" 'a\b' "$long"
echo text >'with space'
printf 'x\ty\n' >$'tab\there'
rm -rf src && echo 'was a directory' >src
git init -q .
git config diff.external "touch $T/pwned"
git config core.fsmonitor "touch $T/pwned"
git config diff.x.textconv "touch $T/pwned"
echo '* diff=x' >.gitattributes

"$tool" "$T/base" "$T/draft" patch --moved new=old >"$T/patch"
"$tool" "$T/base" "$T/draft" list >"$T/list"
[ ! -e "$T/pwned" ] || fail 'a command out of the tree was run'
grep -q '^rename from old/f1$' "$T/patch" || fail 'the move is not in the patch'
cd "$T/base"
git apply --whitespace=nowarn --binary "$T/patch"
# git makes no empty directories and leaves none.
diff -r --no-dereference -x .git "$T/base" "$T/draft" ||
  fail 'the patch does not give the draft'
[ -x "$T/base/tool.sh" ] || fail 'the mode is not in the patch'
git apply -R --whitespace=nowarn --binary "$T/patch"
same "$(printf 'one\ntwo\nthree')" "$(cat README.md)" 'taken back'

# The list: names escaped, the danger of git's configuration named by key.
LC_ALL=C grep -qP '[\x00-\x08\x0b-\x1f\x7f]|\xc2[\x80-\x9f]' "$T/list" &&
  fail 'the list has control characters'
grep -q 'danger git-config.*core.fsmonitor' "$T/list" ||
  fail 'no danger for core.fsmonitor'
grep -q "danger symlink-outside.*$T/elsewhere" "$T/list" ||
  fail 'the symlink does not say where it leads'

# Every form gives the same list of changes.
"$tool" "$T/base" "$T/draft" json --moved new=old >"$T/json"
if command -v jq >/dev/null; then
  jq -e '.version == 1 and (.digest | startswith("sha256:"))
    and ([.changes[] | select(.path_bytes == "//4=")] | length) == 1
    and ([.changes[] | select(.path == ".git/")] | length) == 1' \
    "$T/json" >/dev/null || fail 'the JSON is not what the contract says'
fi
