#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Another directory at the workspace's path (removed and cloned again, say) is
# another workspace: the draft of the old one is kept, named and readable, and
# nothing of it is mixed with the new tree.
. "$(dirname "$0")/lib.sh" || exit 1
needs jq
needs_fuse

names() { sl drafts --json | jq -r '[.drafts[].name] | join(" ")'; }
replaced() {
  local top old
  top=$PWD
  sl run --quiet -- sh -c 'echo agent >>README.md; echo new >new'
  old=$(names)
  cd /
  rm -rf "$top"
  mkdir "$top"
  cd "$top"
  echo other >other
  # Its daemon may live or not: both see that it is over.
  sl status >"$T/out" 2>&1
  grep -q 'no draft here' "$T/out" || fail "$(cat "$T/out")"
  sl drafts >"$T/out"
  grep -A 1 "$old " "$T/out" | grep -q 'its directory is gone' || fail "$(cat "$T/out")"
  same other "$(sl run -- ls 2>"$T/err")"
  grep -q "draft '$old' stands over" "$T/err" || fail "$(cat "$T/err")"
  same 2 "$(names | wc -w)"
  # What it held can be read, and not run over the new tree.
  same new "$(sl -d "$old" cat new)"
  exits 3 sl -d "$old" commit -a -y --danger 2>/dev/null
  exits 3 sl -d "$old" run -- true 2>"$T/err"
  grep -q 'no longer the directory' "$T/err" || fail "$(cat "$T/err")"
  same other "$(ls)"
  sl rm -y "$old"
  same 1 "$(names | wc -w)"
}
both_modes replaced

# While a view of the old one is open, that is said.
busy() {
  local top place
  top=$PWD
  place=$(sl mount)
  cd /
  mv "$top" "$top-moved"
  mkdir "$top"
  cd "$top"
  exits 5 sl -d "$(names)" diff 2>"$T/err"
  grep -q 'replaced by another directory' "$T/err" || fail "$(cat "$T/err")"
  cd /
  rmdir "$top"
  mv "$top-moved" "$top"
  cd "$top"
  sl diff >/dev/null
  same "$place" "$(sl mount)"
  sl unmount
}
both_modes busy

# A view of the old one is taken away like any other: by itself, by its draft's
# name, by its place.
taken_away() {
  local top place name how
  top=$PWD
  for how in plain name place; do
    place=$(sl mount)
    echo "$how" >"$place/written"
    name=$(names)
    cd /
    mv "$top" "$top-moved"
    mkdir "$top"
    cd "$top"
    prints "$place" mount
    case $how in
      plain) sl unmount ;;
      name) sl -d "$name" unmount ;;
      place) sl unmount "$place" ;;
    esac
    not sh -c "mount | grep -q '$place'"
    prints nothing sh -c '"$STOPLOG" unmount 2>&1 || echo nothing'
    cd /
    rmdir "$top"
    mv "$top-moved" "$top"
    cd "$top"
    same "$how" "$(sl cat written)"
  done
}
both_modes taken_away
