#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# From an approval to the real tree and back, and everything that may stand in
# between: drift, merges, stale approvals, dangers, links, modes, mounts.
. "$(dirname "$0")/lib.sh" || exit 1
needs jq git script
needs_fuse

# Names, types, modes, contents and times of the tree, without git's inside.
listing() {
  find . -path ./.git -prune -o -type d -printf '%p %y %m %T@\n' -o \
    -printf '%p %y %m %T@ %l ' -type f -exec sha256sum {} \; -o -printf '\n' |
    LC_ALL=C sort
}
# The newest file of this name among the drafts'.
of_draft() { find "$XDG_STATE_HOME/stoplog/drafts" -name "$1" -printf '%T@ %p\n' | sort -n | tail -n 1 | cut -d' ' -f2-; }
lines() { printf '%s\n' "$@"; }

commit_undo_redo() {
  seq 1 40 >text
  printf 'gone\n' >old
  printf '#!/bin/sh\n' >script
  ln -s text link
  mkdir -p dir/sub && echo x >dir/sub/x && echo y >dir/y
  touch -d '2001-02-03 04:05:06' text old script dir/y
  git add -A && git commit -qm more
  local before after
  before=$(listing)
  sl run --quiet -- sh -c '
    sed -i "s/^20$/twenty/" text; rm old; chmod 755 script; ln -sfn script link
    mv dir/sub dir/moved; echo new >dir/moved/new; mkdir -p n/e/w; echo z >n/e/w/z
    ln text twin; rm dir/y; mkdir dir/y; echo in >dir/y/in'
  sl approve --all --danger >/dev/null
  sl commit --receipt "$T/receipt.json" >/dev/null
  grep -qx twenty text || fail 'the edit is not there'
  test ! -e old
  test -x script
  same script "$(readlink link)"
  same new "$(cat dir/moved/new)"
  test ! -e dir/sub
  same in "$(cat dir/y/in)"
  same "$(stat -c %i text)" "$(stat -c %i twin)"
  after=$(listing)
  # The receipt has who, what and both sides.
  jq -e '.version == 1 and .commit == 1 and .kind == "commit" and
    (.digest | startswith("sha256:")) and (.plan | startswith("sha256:")) and
    (.policy | startswith("sha256:")) and (.user | length > 0) and
    (.patch | startswith("sha256:")) and
    (.commands | length == 1 and .[0].argv[0] == "sh") and
    (.changes[] | select(.path == "text") |
      (.old.sha256 != .new.sha256) and .old.mode == .new.mode)' \
    "$T/receipt.json" >/dev/null || fail "the receipt: $(cat "$T/receipt.json")"
  same "$(sha256sum <text | cut -d' ' -f1)" \
    "$(jq -r '.changes[] | select(.path == "text").new.sha256[7:]' "$T/receipt.json")"

  sl undo >/dev/null
  same "$before" "$(listing)" 'after the undo'
  exits 3 sl undo 1 2>"$T/err"
  grep -q 'commit 1 was taken back by commit 2' "$T/err" || fail "$(cat "$T/err")"
  # An undo is a commit of its own, and is undone by its number.
  sl undo 2 >/dev/null
  same "$after" "$(listing)" 'after the undo of the undo'
  sl undo 1 >/dev/null
  same "$before" "$(listing)" 'after the last undo'
  # What was edited since is not undone.
  sl run --quiet -- sh -c 'echo agent >>text'
  sl approve --all && sl commit >/dev/null
  echo person >>text
  exits 3 sl undo 2>"$T/err"
  grep -q 'text.*other content' "$T/err" || fail "no name: $(cat "$T/err")"
  same person "$(tail -n 1 text)"
  sl log --verify >/dev/null
  test -z "$(find . -name '.stoplog*')" || fail 'a temporary file remains'
}
both_modes commit_undo_redo

drift_and_merge() {
  seq 1 40 >text
  seq 1 40 >both
  git add -A && git commit -qm more
  # In place, and saved by renaming over.
  sl run --quiet -- sh -c 'sed "s/^30$/agent/" both >/tmp/x; cat /tmp/x >both; sed -i "s/^30$/agent/" text; echo n >new'
  sl approve --all
  sed -i 's/^5$/person/' text
  exits 3 sl commit 2>"$T/err"
  grep -q 'text has other content now, since 20' "$T/err" ||
    fail "drift without a name and a time: $(cat "$T/err")"
  ! grep -q 'both has' "$T/err" || fail 'what did not drift is named'
  test ! -e new || fail 'a part of it was written'
  same 30 "$(sed -n 30p both)"
  # What a merge makes of the real file is shown when asked, and nothing is
  # written; on a terminal without a byte that it would obey.
  sed -i "27s/.*/red $(printf '\033[31m')/" text
  sl commit --merge --dry-run >"$T/out" 2>/dev/null
  grep -qx -- '-30' "$T/out" && grep -qx '+agent' "$T/out" ||
    fail "no merged text: $(cat "$T/out")"
  ! grep -q '^-[pr]' "$T/out" || fail 'the merge takes the real edit back'
  same 30 "$(sed -n 30p text)"
  test ! -e new || fail 'a dry run wrote'
  script -qec "'$STOPLOG' commit --merge --dry-run" /dev/null </dev/null >"$T/tty"
  grep -q 'agent' "$T/tty" && grep -q ' red ' "$T/tty" ||
    fail "not on the terminal: $(cat "$T/tty")"
  ! grep -q "$(printf 'red \033')" "$T/tty" || fail 'a raw escape on the terminal'
  # What was shown is what is committed, or nothing is.
  local digest
  digest=$(sed -n 's/^merge //p' "$T/out")
  exits 2 sl commit --digest "$digest" 2>/dev/null
  sed -i '27s/.*/27/' text
  exits 3 sl commit --merge --digest "$digest" 2>"$T/err"
  grep -q 'not what was shown' "$T/err" || fail "no reason: $(cat "$T/err")"
  test ! -e new || fail 'another merge than the one shown was committed'
  digest=$(sl commit --merge --dry-run 2>/dev/null | sed -n 's/^merge //p')
  # Clean: both edits, and no new approval.
  sl commit --merge --digest "$digest" --receipt "$T/receipt" >/dev/null 2>&1
  same "$digest" "$(jq -r .merge "$T/receipt")"
  same 'person agent' "$(sed -n '5p;30p' text | xargs)"
  same n "$(cat new)"
  # Conflicting: refused, and no marker anywhere.
  sl run --quiet -- sh -c 'sed "s/^10$/agent/" both >/tmp/x; cat /tmp/x >both'
  sl approve --all
  sed -i 's/^10$/person/' both
  local before
  before=$(listing)
  exits 3 sl commit --merge 2>"$T/err"
  grep -q both "$T/err" || fail "no name: $(cat "$T/err")"
  same "$before" "$(listing)" 'after a conflict'
  ! grep -rq '<<<<<<<' --include='*' --exclude-dir=.git . || fail 'conflict markers'
}
both_modes drift_and_merge

# A change of name, mode or content in the draft, another of the same file in the
# real tree: saved in place or by renaming over.
merge_kinds() {
  local f
  for f in edited moved mode carried under; do seq 1 40 >"$f"; done
  printf 'a\0b' >binary
  touch -d '2001-02-03 04:05:06' edited moved mode carried under binary
  git add -A && git commit -qm more
  sl run --quiet -- sh -c '
    mv edited edited2; sed "s/^30$/agent/" edited2 >/tmp/x; cat /tmp/x >edited2
    mv moved moved2; chmod 755 mode binary; mv carried carried2; chmod 700 carried2
    sed -i "s/^30$/agent/" under'
  sl approve --all --danger >/dev/null
  sed -i 's/^5$/person/' edited moved carried
  sed 's/^5$/person/' mode >"$T/x" && cat "$T/x" >mode
  printf 'c\0d' >binary
  chmod 600 under
  local before digest
  before=$(listing)
  # What was approved is that still; what drifted is named, with a time.
  exits 3 sl commit 2>"$T/err"
  for f in edited moved mode carried binary; do
    grep -q "$f has other content now, since 20" "$T/err" || fail "$f: $(cat "$T/err")"
  done
  grep -q 'under has mode 0600 now' "$T/err" || fail "$(cat "$T/err")"
  sl commit --merge --dry-run >"$T/out" 2>/dev/null
  grep -q '^rename to moved2' "$T/out" && grep -q '^new mode 100755' "$T/out" &&
    grep -qx '+agent' "$T/out" || fail "not shown: $(cat "$T/out")"
  ! grep -q '^[-+]person' "$T/out" || fail 'the real edits are shown as the merge'
  same "$before" "$(listing)" 'after a dry run'
  digest=$(sed -n 's/^merge //p' "$T/out")
  chmod 640 under
  exits 3 sl commit --merge --digest "$digest" 2>/dev/null
  chmod 600 under
  sl commit --merge --digest "$digest" >/dev/null 2>&1
  same 'person agent' "$(sed -n '5p;30p' edited2 | xargs)"
  for f in moved2 carried2 mode; do same person "$(sed -n 5p "$f")"; done
  same 'agent 600' "$(sed -n 30p under) $(stat -c %a under)"
  same '644 700 755 755' "$(stat -c %a moved2 carried2 mode binary | xargs)"
  same "$(printf 'c\0d' | sha256sum)" "$(sha256sum <binary)"
  test ! -e edited && test ! -e moved && test ! -e carried
  # The draft has what the real tree has.
  same '' "$(sl status --json | jq -r '.changes[].path')"
  same 'person agent person person' \
    "$(sl run --quiet -- sh -c 'sed -n "5p;30p" edited2; sed -n 5p mode; sed -n 5p moved2' | xargs)"
  sl undo >/dev/null
  same "$before" "$(listing)" 'after the undo'
  # One mode cannot be two.
  sl discard -y >/dev/null
  sl run --quiet -- sh -c 'chmod 755 under; echo more >>under'
  sl approve --all
  chmod 640 under
  before=$(listing)
  exits 3 sl commit --merge 2>"$T/err"
  grep -q 'under has mode 0640 now, .*changed on both sides: 0640 in the real tree, 0755' \
    "$T/err" || fail "$(cat "$T/err")"
  same "$before" "$(listing)" 'after a conflict of modes'
}
both_modes merge_kinds

# Nobody knows what the base of a file was that the draft has not read: who looks
# again approves the draft's part over what is there now.
approved_anew() {
  seq 1 40 >text && seq 1 40 >gone
  git add -A && git commit -qm more
  sl run --quiet -- sh -c 'mv text moved; chmod 755 moved; rm gone'
  sed -i 's/^5$/person/' text gone
  sl diff >"$T/out"
  ! grep -q person "$T/out" || fail "the real edit is shown as the draft's: $(cat "$T/out")"
  same 'modified' "$(sl status --json | jq -r '.changes[] | select(.path == "moved").drift' | cut -d' ' -f1)"
  sl approve moved >/dev/null
  sl commit -y >/dev/null
  same person "$(sed -n 5p moved)"
  same gone "$(sl status --json | jq -r '.changes[].path')"
  # A deletion that was approved is named with what became of the file.
  sl approve gone >/dev/null
  sed -i 's/^6$/again/' gone
  exits 3 sl commit 2>"$T/err"
  grep -q 'gone is another file now, and what it was is not known, since 20' "$T/err" || fail "$(cat "$T/err")"
  exits 3 sl commit --merge 2>"$T/err"
  grep -q 'gone is .*, and the draft removes it' "$T/err" || fail "$(cat "$T/err")"
  same again "$(sed -n 6p gone)"
}
both_modes approved_anew

# `git gc` runs by itself, on both sides: what one file said of a ref is gone then,
# and its log says it still. A ref that the real repository moved is left.
packed_on_both_sides() {
  git branch topic && git branch theirs && git branch left
  export GIT_AUTHOR_NAME=t GIT_AUTHOR_EMAIL=t@t GIT_COMMITTER_NAME=t GIT_COMMITTER_EMAIL=t@t
  sl run --quiet -- sh -c '
    export GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a
    echo agent >>README.md; git commit -qam agent; git branch -qf topic main
    git branch -qf left main; git branch new; git tag -m t v1; git gc -q'
  git checkout -q theirs && git commit -q --allow-empty -m theirs && git checkout -q main
  git branch -qf left theirs
  git gc -q
  sl approve --all --danger >/dev/null 2>&1
  sl commit >"$T/out" 2>&1
  same 'agent agent agent theirs theirs' \
    "$(for ref in main topic new theirs left; do git log -1 --format=%s "$ref"; done | xargs)"
  same v1 "$(git tag)"
  grep -q 'refs/heads/left moved in the real repository' "$T/out" || fail "$(cat "$T/out")"
  ! grep -q 'heads/main\|heads/topic' "$T/out" || fail "$(cat "$T/out")"
  same '' "$(git status --porcelain)"
  git fsck --strict >/dev/null 2>&1 || fail 'the repository is damaged'
  git gc -q
  sl undo >"$T/out" 2>&1 || fail "$(cat "$T/out")"
  same 'first first theirs theirs' \
    "$(for ref in main topic theirs left; do git log -1 --format=%s "$ref"; done | xargs)"
  same '' "$(git tag)$(git branch --list new)"
  git fsck --strict >/dev/null 2>&1 || fail 'the repository is damaged by the undo'
}
both_modes packed_on_both_sides

# A file deleted in a directory that moves with the same commit.
moved_without_one() {
  mkdir -p deep/one && echo g >deep/one/gone && echo k >deep/one/kept
  git add -A && git commit -qm more
  sl run --quiet -- sh -c 'rm deep/one/gone; mv deep moved'
  sl commit -a -y >"$T/out" 2>&1
  ! grep -q 'still held' "$T/out" || fail "$(cat "$T/out")"
  same kept "$(ls moved/one)"
  same '' "$(sl status 2>/dev/null)"
  sl undo >/dev/null 2>&1
  same 'gone kept' "$(ls deep/one | xargs)"
}
both_modes moved_without_one

# A prompt or an editor runs `git status` all the time, and a build touches
# files: neither is an edit.
refreshed_meanwhile() {
  seq 1 40 >text
  git add -A && git commit -qm more
  sl run --quiet -- sh -c 'sed -i "s/^30$/agent/" text; git -c user.name=a -c user.email=e commit -qam agent'
  touch -d '2001-02-03 04:05:06' text
  git update-index --refresh >/dev/null
  same null "$(sl status --json | jq -c '[.changes[].drift] | unique[]')"
  sl commit -a -y >/dev/null 2>&1
  same '' "$(git status --porcelain)" 'the index did not follow'
  same agent "$(git log -1 --format=%s)"
}
both_modes refreshed_meanwhile

# What a person does with git after a commit, and what git does by itself, is no
# edit of what was committed.
undo_beside_git() {
  git branch old && git branch wide/one
  sl run --quiet -- sh -c 'echo n >n; git add n
    git -c user.name=a -c user.email=e commit -qm agent; git branch topic
    git branch -qD old wide/one; git branch old/deep; git branch wide'
  sl commit -a -y >"$T/out" 2>&1
  same 'main old/deep topic wide' "$(git branch --format='%(refname:short)' | xargs)"
  ! grep -q left "$T/out" || fail "$(cat "$T/out")"
  git checkout -qb mine && git commit -q --allow-empty -m mine && git checkout -q main
  git gc -q
  sl undo >"$T/out" 2>&1 || fail "$(cat "$T/out")"
  same first "$(git log -1 --format=%s)"
  same mine "$(git log -1 --format=%s mine)"
  same '' "$(git status --porcelain)$(sl status 2>/dev/null)"
  same 'main mine old wide/one' "$(git branch --format='%(refname:short)' | xargs)"
  git fsck --strict >/dev/null 2>&1 || fail 'the repository is damaged'
}
both_modes undo_beside_git

approvals() {
  echo a >a
  git add -A && git commit -qm more
  # Exactly what was shown: a later edit voids that approval alone.
  sl run --quiet -- sh -c 'echo b >>a; echo n >n'
  sl approve a n
  local plan
  plan=$(of_draft plan.json)
  jq -e '.decisions[] | select(.path == "a") | .verdict == "approved" and
    (.base | startswith("sha256:")) and (.new | startswith("sha256:")) and
    (.change | startswith("sha256:")) and (.set | startswith("sha256:")) and
    (.user | length > 0) and (.time | length > 0)' "$plan" >/dev/null ||
    fail "what is recorded: $(cat "$plan")"
  same false "$(sl status --json | jq .stale)"
  sl run --quiet -- sh -c 'echo later >>n'
  same true "$(sl status --json | jq .stale)"
  sl status >"$T/out" 2>&1
  grep -q 'approved changed since' "$T/out" || fail "not said: $(cat "$T/out")"
  exits 3 sl commit 2>"$T/err"
  grep -q 'since they were approved: n' "$T/err" || fail "$(cat "$T/err")"
  same a "$(cat a)"
  sl approve n
  sl commit >/dev/null
  same 'a b n later' "$(cat a n | xargs)"
  # A danger is approved by its name or with --danger, nothing else.
  sl run --quiet -- sh -c 'echo "{}" >.envrc; echo o >o'
  sl approve --all
  exits 4 sl commit -a -y
  test ! -e o
  sl approve .envrc
  sl commit >/dev/null
  test -e .envrc
  # Who, when and on which terminal; without one it is said.
  sl run --quiet -- sh -c 'echo t >t; echo u >u'
  script -qec "tty >'$T/name'; '$STOPLOG' approve t" /dev/null >/dev/null
  sl approve u </dev/null
  jq -e --arg tty "$(tr -d '\r\n' <"$T/name")" --arg user "$(id -un)" \
    '[.entries[] | select(.kind == "approve")] | .[-2:] |
     (.[0].tty == $tty and .[1].tty == null) and
     all(.user == $user and (.time | test("^20")) and (.digest | test("^sha256:")))' \
    <(sl log --json) >/dev/null || fail "the approvals: $(sl log --json | tail -c 1500)"
  sl commit --receipt "$T/receipt.json" >/dev/null
  same "$(tr -d '\r\n' <"$T/name") null" \
    "$(jq -r '[.approvals[] | select(.path == "t" or .path == "u").tty | tostring] | join(" ")' "$T/receipt.json")"
  # setuid only by name.
  sl run --quiet -- sh -c 'echo s >s; chmod 4755 s; echo w >w; chmod 666 w'
  sl approve w
  exits 4 sl commit -a -y 2>/dev/null
  test ! -u s || fail 'a setuid bit came without its name'
  # Rejected: the reason is readable inside and known again with the hunk.
  seq 1 9 >r && git add -A && git commit -qm r
  sl run --quiet -- sh -c 'sed -i s/^5$/five/ r'
  sl reject r --reason 'numbers stay numbers'
  # Neither `--all` nor a directory takes it along, its own name does.
  sl approve --all . >"$T/out" 2>/dev/null
  grep -qx '  w' "$T/out" || fail "an approval was not renewed: $(cat "$T/out")"
  grep -A1 'rejected before' "$T/out" | grep -qx '  r' || fail "$(cat "$T/out")"
  same rejected "$(sl status --json | jq -r '.changes[] | select(.path == "r").decision')"
  sl approve r >/dev/null 2>&1
  same approved "$(sl status --json | jq -r '.changes[] | select(.path == "r").decision')"
  sl reject r --reason 'numbers stay numbers'
  sl run --quiet -- cat /run/stoplog/rejections >"$T/notes"
  grep -q 'r: numbers stay numbers' "$T/notes" || fail "$(cat "$T/notes")"
  # One that was told to no daemon is there in the next.
  kill "$(sl drafts --json | jq '.drafts[] | select(.current).daemon')"
  eventually sh -c '"$STOPLOG" drafts --json | jq -e "[.drafts[] | select(.current).daemon] == [null]" >/dev/null'
  sl reject w --reason 'nor this' >/dev/null
  prints 'w: nor this' sl run --quiet -- cat /run/stoplog/rejections
  sl run --quiet -- sh -c 'echo >/run/stoplog/rejections' 2>/dev/null &&
    fail 'the notes can be written inside'
  sl run --quiet -- sh -c 'seq 1 9 >r'
  same 0 "$(sl status --json | jq '[.changes[] | select(.path == "r")] | length')"
  sl run --quiet -- sh -c 'sed -i s/^5$/five/ r; echo ten >>r'
  # The other one beside it is undecided.
  same partial "$(sl status --json | jq -r '.changes[] | select(.path == "r").decision')"
  exits 4 sl commit -a -y 2>/dev/null
  ! grep -q five r || fail 'a rejected hunk was committed'
}
both_modes approvals

# A dry run of -a approves as -a does; who rejected a part approved nothing.
dry_runs() {
  seq 1 40 >text && git add -A && git commit -qm more
  sl run --quiet -- sh -c 'sed -i "s/^5$/five/; s/^30$/thirty/" text; echo o >x.o; echo g >gone'
  sl approve gone
  printf 'x\nno\nq\n' | TERM=dumb script -qec "'$STOPLOG' approve -p text" /dev/null >/dev/null
  sl run --quiet -- sh -c 'rm gone; echo n >n'
  mkdir -p "$XDG_CONFIG_HOME/stoplog"
  printf '[gate]\nignored = "commit"\n' >"$XDG_CONFIG_HOME/stoplog/config.toml"
  sl commit -a -y --dry-run >"$T/out" 2>&1 || fail "$(cat "$T/out")"
  grep -q 'x\.o' "$T/out" || fail "what -a takes is not shown: $(cat "$T/out")"
  rm "$XDG_CONFIG_HOME/stoplog/config.toml"
  exits 3 sl commit 2>/dev/null
  test ! -e n
  sl discard -y x.o >/dev/null 2>&1
  sl run --quiet -- sh -c 'echo g >gone'
  sl approve gone n >/dev/null
  sl commit --receipt "$T/receipt.json" >/dev/null 2>&1
  same 'gone n' "$(jq -r '[.approvals[].path] | join(" ")' "$T/receipt.json")"
}
both_modes dry_runs

policies() {
  local config="$XDG_CONFIG_HOME/stoplog/config.toml"
  mkdir -p "${config%/*}"
  # observe: read-only inside, nothing is committed.
  printf '[gate]\nmode = "observe"\n' >"$config"
  not sl run --quiet -- sh -c 'echo x >x' 2>/dev/null
  exits 4 sl commit -a -y 2>/dev/null
  # hold: it is held, and stays so.
  printf '[gate]\nmode = "hold"\n' >"$config"
  sl run --quiet -- sh -c 'echo x >x'
  sl approve --all
  exits 4 sl commit 2>"$T/err"
  grep -q 'hold' "$T/err" || fail "$(cat "$T/err")"
  test ! -e x
  rm "$config"
  sl commit >/dev/null
  same x "$(cat x)"
  # max_age: an old approval must be renewed, a rejection does not grow old.
  sl run --quiet -- sh -c 'echo y >y; echo z >z'
  sl approve y
  sl reject z --reason no
  printf '[gate]\nmax_age = "1s"\n' >"$config"
  local plan
  plan=$(of_draft plan.json)
  sed -i 's/"time":"20[0-9][0-9]-/"time":"2001-/g' "$plan"
  exits 3 sl commit 2>"$T/err"
  grep -q 'y was approved .* ago' "$T/err" || fail "$(cat "$T/err")"
  test ! -e y
  # -a approves what was approved before as of now.
  sl commit -a -y --dry-run >/dev/null
  test ! -e y
  printf '[gate]\nmax_age = "24h"\n' >"$config"
  sl approve y
  sl commit >/dev/null
  same y "$(cat y)"
  # auto: what the policy approves comes by itself, and is logged as its word.
  printf '[gate]\nmode = "auto"\nauto_approve = ["docs/**"]\nalways_ask = ["docs/ask"]\n' >"$config"
  sl run --quiet -- sh -c 'mkdir docs; echo d >docs/d; echo a >docs/ask; echo s >s' 2>/dev/null
  same d "$(cat docs/d)"
  test ! -e docs/ask || fail 'always_ask was not asked'
  test ! -e s
  sl log --json | jq -e '[.entries[] | select(.kind == "approve" and .standing)] |
    length == 1 and .[0].paths == ["docs/d"]' >/dev/null ||
    fail "no standing approval in the ledger: $(sl log --json)"
  rm "$config"
}
both_modes policies

# An edit of the ledger anywhere is found, and said where.
ledger() {
  sl run --quiet -- sh -c 'echo x >x; echo held >held'
  sl approve x
  sl commit >/dev/null
  sl undo >/dev/null
  sl log --verify >/dev/null
  local file copy n
  file=$(of_draft ledger.jsonl)
  copy=$(cat "$file")
  n=$(wc -l <"$file")
  [ "$n" -ge 4 ] || fail "only $n entries"
  local i
  for i in $(seq 1 "$n"); do
    sed -i "${i}s/\"time\":\"20/\"time\":\"19/" "$file"
    sl log --verify >"$T/out" 2>&1 && fail "a changed entry $i was not found"
    grep -q "$i" "$T/out" || fail "not said where: $(cat "$T/out")"
    lines "$copy" >"$file"
    sed -i "${i}d" "$file"
    sl log --verify >/dev/null 2>&1 && fail "a removed entry $i was not found"
    lines "$copy" >"$file"
  done
  sed -i '2{h;d};3{G}' "$file"
  sl log --verify >/dev/null 2>&1 && fail 'two entries in another order were not found'
  lines "$copy" >"$file"
  sl log --verify >/dev/null
}
both_modes ledger

# A limit on file sizes kills the commit while it stages.
die_while_staging() {
  echo old >a
  sl run --quiet -- sh -c 'echo new >a; head -c 3000000 /dev/zero >big'
  sl approve --all
  ! (
    ulimit -c 0
    ulimit -f 1000
    "$STOPLOG" commit -y >"$T/out" 2>&1
  ) || fail 'the commit did not die'
}

# A commit that died is ended by the next command, which says so and writes it
# down.
recovered() {
  die_while_staging
  [ -n "$(find "$XDG_STATE_HOME/stoplog/commits" -name intent)" ] ||
    fail "it left nothing to recover: $(cat "$T/out")"
  sl status >"$T/out" 2>&1
  grep -q 'interrupted has been taken back' "$T/out" || fail "$(cat "$T/out")"
  same old "$(cat a)"
  test ! -e big
  sl log --json | jq -e '[.entries[] | select(.kind == "recover")] |
    length == 1 and .[0].result == "taken back"' >/dev/null ||
    fail "no recovery in the ledger: $(sl log --json)"
  prints recover sl log
  sl log --verify >/dev/null
  sl commit -y >/dev/null
  same new "$(cat a)"
}
both_modes recovered

# The same, but another directory stands at the workspace's path by then: it is
# left alone, commands go on, and the commit is ended when the old one is back.
set_aside() {
  die_while_staging
  local top=$PWD
  mv "$top" "$top.old"
  mkdir "$top"
  cd "$top"
  echo other >a
  sl drafts >"$T/out" 2>&1
  grep -q 'interrupted on another directory' "$T/out" || fail "$(cat "$T/out")"
  sl status >"$T/out" 2>&1
  not grep -q interrupted "$T/out"
  same other "$(cat a)"
  test -n "$(find "$XDG_STATE_HOME/stoplog/commits" -path '*/aside/*' -name intent)"
  mv "$top" "$top.new"
  mv "$top.old" "$top"
  cd "$top"
  sl status >"$T/out" 2>&1
  grep -q 'interrupted has been taken back' "$T/out" || fail "$(cat "$T/out")"
  same old "$(cat a)"
  sl commit -y >/dev/null
  same new "$(cat a)"
  rm -rf "$top.new"
}
both_modes set_aside

# A directory moved over an empty one of the real tree, and over one whose
# content goes.
over_directories() {
  mkdir -p new/sub old empty
  echo 1 >new/one
  echo 2 >new/sub/two
  echo 3 >old/three
  touch -d 2001-01-01 new/one
  sl run --quiet -- python3 -c "
import os
os.rename('new', 'empty')
os.unlink('old/three'); os.rename('empty/sub', 'old')
open('old/four', 'w').write('4')"
  sl status >"$T/out"
  sl commit -a --danger -y >/dev/null
  same 'empty empty/one old old/four old/two' "$(echo $(find empty old | LC_ALL=C sort))"
  test -z "$(sl status --json | jq -r '.changes[].path')"
  same 'empty empty/one old old/four old/two' \
    "$(sl run --quiet -- sh -c 'echo $(find empty old | LC_ALL=C sort)')"
  sl undo >/dev/null
  same 'empty new new/one new/sub new/sub/two old old/three' \
    "$(echo $(find empty new old | LC_ALL=C sort))"
}
both_modes over_directories

# What is discarded is shown as it is in the real tree, where the draft moved
# that file away as well; a moved directory goes back as a whole.
discards() {
  mkdir sub empty
  echo x >sub/x
  echo y >sub/y
  sl run --quiet -- sh -c 'mv sub/x sub/y; echo new >sub/x'
  sl discard -y sub/x >/dev/null
  same sub/y "$(sl status --json | jq -r '.changes[].path')"
  same 'x x' "$(sl run --quiet -- sh -c 'echo $(cat sub/x sub/y)')"
  # Without a daemon, too.
  sl run --quiet -- sh -c 'mv sub/x sub/y; echo new >sub/x'
  kill -9 "$(sl drafts --json | jq '.drafts[0].daemon')"
  sl discard -y sub/x >/dev/null
  same 'x x' "$(sl run --quiet -- sh -c 'echo $(cat sub/x sub/y)')"
  sl discard -y sub/y >/dev/null
  same 'x y' "$(sl run --quiet -- sh -c 'echo $(cat sub/x sub/y)')"
  sl run --quiet -- python3 -c 'import os; os.rename("sub", "empty")'
  exits 4 sl discard -y empty/x 2>"$T/err"
  grep -q 'over another directory' "$T/err" || fail "$(cat "$T/err")"
  sl discard -y sub empty >/dev/null
  same 'empty sub sub/x sub/y' \
    "$(sl run --quiet -- sh -c 'echo $(find empty sub | LC_ALL=C sort)')"
  test -z "$(sl status --json | jq -r '.changes[].path')"
}
both_modes discards

# One of two names of a file is committed, and the draft goes back past that:
# the other one is what it was.
back_past_a_link() {
  echo text >b
  ln b linked
  sl run --quiet -- sh -c 'cat b linked >seen; rm seen; touch b'
  sl run --quiet -- sh -c 'echo more >>b'
  sl approve b
  sl commit -y >/dev/null
  same 'text more text' "$(echo $(cat b linked))"
  sl rollback @2 >/dev/null
  same 'text text' "$(sl run --quiet -- sh -c 'echo $(cat b linked)')"
  same b "$(sl status --json | jq -r '.changes[].path')"
  sl commit -a -y >/dev/null
  same 'text text' "$(echo $(cat b linked))"
}
both_modes back_past_a_link

# A directory on which a file system is mounted cannot go: said so, with nothing done.
mounted_beneath() {
  [ "$MODE" = root ] && [ -n "${STOPLOG_TEST_INSIDE:-}" ] || return 0
  mkdir sub
  mount -t tmpfs stoplog-test sub
  echo a >sub/a
  sl run --quiet -- sh -c 'echo b >sub/a; echo n >n'
  sl commit -a -y >/dev/null
  same 'b n' "$(cat sub/a n | xargs)"
  sl run --quiet -- sh -c 'rm -r sub; echo more >>n'
  exits 6 sl commit -a -y --danger 2>"$T/err"
  grep -q 'sub: Device or resource busy' "$T/err" || fail "$(cat "$T/err")"
  grep -q '^hint: .*mounted' "$T/err" || fail "no hint: $(cat "$T/err")"
  same 'b n' "$(cat sub/a n | xargs)"
  sl discard -y >/dev/null
  sl run --quiet -- mv sub/a here
  exits 5 sl commit -a -y 2>"$T/err"
  grep -q 'sub/a cannot move to here: another file system' "$T/err" || fail "$(cat "$T/err")"
  same b "$(cat sub/a)"
  test -z "$(find . -name '.stoplog*')" || fail 'a temporary file remains'
}
both_modes mounted_beneath

# A directory that its owner made read-only stops a commit, whole.
read_only_directory() {
  mkdir ro && echo a >ro/a && echo b >b
  git add -A && git commit -qm more
  sl run --quiet -- sh -c 'echo A >ro/a; echo B >b'
  sl approve --all
  chmod 555 ro
  if [ "$MODE" = user ]; then
    exits 6 sl commit 2>"$T/err"
    grep -q 'ro/a' "$T/err" || fail "no name: $(cat "$T/err")"
    grep -q '^hint: .*yours to write' "$T/err" || fail "no hint: $(cat "$T/err")"
    same 'a b' "$(cat ro/a b | xargs)"
    test -z "$(find . -name '.stoplog*')" || fail 'a temporary file remains'
    chmod 755 ro
  fi
  sl commit >/dev/null
  same 'A B' "$(cat ro/a b | xargs)"
}
both_modes read_only_directory
