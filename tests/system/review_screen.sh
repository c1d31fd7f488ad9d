#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The review screen on a real terminal: what is drawn, decided, kept and
# committed, at several sizes.
. "$(dirname "$0")/lib.sh" || exit 1
. "$TOP/tests/tools/tty.sh"
demo=$BUILD/tests/review_demo
[ -x "$demo" ] || fail "build review_demo first"

mkdir -p a/src b/src b/.github/workflows s
for i in $(seq 60); do echo "int line_$i();"; done >a/src/main.c
sed -e '5s/line/changed/' -e '30s/.*/	wide 日本語 é 🎉/' -e '50d' \
  -e "53s/\$/ \\/\\/ $(printf '\033')[31mevil/" a/src/main.c >b/src/main.c
echo gone >a/old.md
echo 'on: push' >b/.github/workflows/ci.yml
printf 'a\0b' >b/blob.bin
ln -s /etc/passwd b/link
mkfifo b/fifo
echo x >"b/$(printf 'evil\033[2Jname')"

# What is drawn, and in which order.
tty_start 80 24 "$demo a b s; echo exit \$?"
tty_sees 'undecided, 3 dangers not seen'
tty_sees 'DANGER ci'
tty_sees '▸ ! A …ub/workflows/ci.yml'
tty_sees 'evil^[[2Jname'
grep -q 'D old.md' <<<"$(tty_screen | sed -n '2,5p')" ||
  fail 'the deletion is not among the first'

# Commit is closed while a danger has not been seen.
tty_send y
tty_sees '✓! A'
tty_send c
tty_sees 'commit is closed: danger not seen'
tty_send '!'
tty_sees 'symlink to /etc/passwd'
tty_send '!'
tty_sees '-gone'
tty_lacks 'not seen'

# Search, hunks, split, a reason, wide and hostile characters.
tty_send / 'main.c' Enter
tty_sees '@@ -2,7 +2,7 @@'
tty_send J y
tty_sees 'wide 日本語 é 🎉'
tty_send J s
tty_sees 'split into 2 hunks'
tty_send x 'no, keep it' Enter
tty_send g
tty_sees 'rejected because: no, keep it'
tty_send G
tty_sees '// ^[[31mevil'
tty_send u
tty_sees 'undone: src/main.c'
tty_send U
tty_sees 'done again: src/main.c'

# Every size, down to silly ones, and back.
tty_resize 200 50
tty_sees '.github/workflows/ci.yml'
tty_resize 40 10
tty_send ']' '['
tty_lacks '│'
tty_send Tab
tty_sees 'evil^[[2Jname'
tty_resize 10 3
tty_resize 1 1
tty_resize 80 24
tty_sees '│'
tty_send Tab

# Help and leaving; the decisions were kept.
tty_send '?'
tty_sees 'approve, reject the rest of the file'
tty_send q
tty_lacks 'approve, reject the rest of the file'
tty_send q
tty_sees 'exit 0'
grep -qx 'src/main.c: approved none rejected none (no, keep it)' s/decisions ||
  fail "decisions: $(cat s/decisions)"
grep -qx '.github/workflows/ci.yml: approved' s/decisions || fail 'ci.yml'
test ! -e s/committed || fail 'committed without being asked'
tty_end

# The second time: what was looked at is known, what changed is marked.
echo 'on: [push, pull_request]' >b/.github/workflows/ci.yml
tty_start 80 24 "$demo a b s; echo exit \$?"
tty_sees '▸ !*A'
tty_sees 'changed since you last'
tty_send w
tty_sees 'binary: decided as a whole'
tty_send w
tty_sees 'changed since you last'

# A commit that is refused says why and stays; one that works ends the review.
echo 'the real tree moved: src/main.c' >s/refuse
tty_send y c
tty_sees '? y/n'
tty_send y
tty_sees 'the real tree moved: src/main.c'
tty_send Escape
rm s/refuse
tty_send c
tty_sees '? y/n'
tty_send n
tty_sees 'not committed'
# A window that changes meanwhile answers no question, and takes no answer away.
tty_send c
tty_sees '? y/n'
tty_resize 100 30
tty_matches '^ review.\{80,\}[a-z]'
tty_send y
tty_sees 'exit 0'
grep -qx '.github/workflows/ci.yml: approved' s/committed || fail 'committed'
tty_end

# Without colour, without UTF-8, on a terminal that can do little.
tty_start 80 24 "LC_ALL=C TERM=vt100 $demo a b; echo exit \$?"
tty_sees '> !'
tty_lacks '│'
tty_send y
tty_sees 'y! A'
tty_send q
tty_sees 'exit 0'
# There is no second screen: what follows does not stand in our last line.
tty_lacks 'q leave'
tty_end

tty_start 80 24 "TERM=dumb $demo a b; echo exit \$?"
tty_sees 'cannot show a full screen'
tty_sees 'hint: `stoplog approve -p`'
tty_sees 'exit 2'
tty_end
exits 2 "$demo" a b </dev/null >out 2>&1
grep -q 'needs a terminal' out || fail "$(cat out)"
