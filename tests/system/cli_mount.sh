#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# `stoplog mount`: a view for programs outside of the jail, in which git works;
# what is written there is held; a dead mount is replaced.
. "$(dirname "$0")/lib.sh" || exit 1
needs git jq
needs_fuse

export PATIENCE=60

shown() {
  local place
  place=$(sl mount)
  same "$place" "$(sl mount)" 'asked twice'
  same "$(stat -c %u:%g README.md)" "$(stat -c %u:%g "$place/README.md")" 'owner'
  echo more >>"$place/README.md"
  echo new >"$place/added"
  same "$(printf ' M README.md\n?? added')" "$(git -C "$place" status --short)" \
    'git in the view'
  git -C "$place" add added
  git -C "$place" commit -qm 'in the view'
  [ ! -e added ] || fail 'a write reached the real tree'
  same first "$(git log -1 --format=%s)" 'the real history'
  same '.git/ README.md added' \
    "$(sl status --json | jq -r '[.changes[].path] | sort | join(" ")')"
  same "$place" "$(sl drafts --json | jq -r '.drafts[0].mount')"

  # A command in the same draft: a user's sees the view, root's has none.
  if [ "$MODE" = user ]; then
    same new "$(sl run --quiet -- cat added)"
  else
    exits 5 sl run --quiet -- true 2>"$T/said"
    grep -q 'hint: .*unmount' "$T/said" || fail "$(cat "$T/said")"
    # So nothing of a jail was made for it, and a rejection reaches nobody.
    same '' "$(pgrep -x stoplog-jail)" 'a zygote'
    sl reject README.md --reason 'not now' 2>/dev/null
  fi
  sl unmount
  [ ! -e "$place/README.md" ] || fail 'still mounted'
  same new "$(sl run --quiet -- cat added)" 'after the view went'
  sl unmount 2>"$T/said" # no mount is no error
}

# The kernel remembers files; how full the file system is it asks every time.
dead() { ! stat -f "$1" >/dev/null 2>&1; }

elsewhere() {
  mkdir "$T/full" && touch "$T/full/x"
  exits 2 sl mount "$T/full" 2>/dev/null
  exits 2 sl mount src 2>"$T/said"
  grep -q overlap "$T/said" || fail "$(cat "$T/said")"
  same "$T/view" "$(sl mount "$T/view")"
  echo one >"$T/view/added"
  # The daemon dies: the mount is dead, and the next one takes its place.
  kill -9 "$(sl drafts --json | jq .drafts[0].daemon)"
  eventually test ! -e "$T/view/added"
  same "$T/view" "$(sl mount "$T/view")"
  same one "$(cat "$T/view/added")"
  # By any name it is the same place; another draft's living view is not taken.
  same "$T/view" "$(cd "$T" && sl --workspace "$W" mount view/)"
  exits 5 sl mount "$T/other" 2>"$T/said"
  grep -q "view is at '$T/view' already" "$T/said" || fail "$(cat "$T/said")"
  exits 5 sl -d second mount "$T/view" 2>"$T/said"
  grep -q "is at '$T/view'" "$T/said" || fail "$(cat "$T/said")"
  same one "$(cat "$T/view/added")" 'the view of the first draft'
  exits 2 sl -d third mount "$T/full/x" 2>/dev/null
  exits 2 sl -d third mount "$T/none/below" 2>/dev/null
  same 1 "$(sl drafts --json | jq '.drafts | length')" 'no draft for nothing'
  # A dead mount is cleared by `unmount` wherever it was asked for.
  kill -9 "$(sl drafts --json | jq .drafts[0].daemon)"
  eventually dead "$T/view"
  sl unmount 2>"$T/said"
  grep -q 'cleared a dead mount' "$T/said" || fail "$(cat "$T/said")"
  ls "$T/view" >/dev/null || fail 'a dead mount was left'
  # While a command runs on the private mount, no other view.
  sl run --quiet -- sh -c 'touch started; sleep 60' &
  eventually sl cat started >/dev/null 2>&1
  exits 5 sl mount "$T/view" 2>/dev/null
  sl stop
  wait "$!" || true
}

# All was committed, and whoever works in the view goes on.
after_a_commit() {
  local place
  place=$(sl mount)
  echo one >"$place/added"
  sl commit -a -y >/dev/null
  same one "$(cat added)"
  sl status >"$T/said" 2>&1
  grep -q "nothing changed; its view is mounted at '$place'" "$T/said" || fail "$(cat "$T/said")"
  echo two >"$place/next"
  prints '^A  next' sl status
  sl commit -a -y >/dev/null
  sl unmount
  ! mountpoint -q "$place" || fail 'still mounted'
  same 'null committed' "$(sl drafts --json | jq -r '.drafts[0] | "\(.daemon) \(.state)"')"
  exits 2 sl unmount 2>/dev/null
  # What was not committed is still held when the view goes.
  sl mount "$T/v" >/dev/null
  echo x >"$T/v/x" && echo y >"$T/v/y"
  sl approve x >/dev/null 2>&1
  sl commit >/dev/null 2>&1
  sl unmount
  prints '^A  y' sl status
}

# The view of another draft than the current one is found, too.
of_another_draft() {
  sl -d one mount "$T/one" >/dev/null
  echo x >"$T/one/x"
  sl run --new --quiet -- true
  sl unmount
  ! mountpoint -q "$T/one" || fail 'still mounted'
  sl -d one mount "$T/one" >/dev/null
  sl -d two mount "$T/two" >/dev/null
  sl run --new --quiet -- true
  exits 2 sl unmount 2>"$T/said"
  grep -q "several views are mounted: '$T/one', '$T/two'" "$T/said" || fail "$(cat "$T/said")"
  # A draft and a place that are not of each other.
  exits 2 sl -d one unmount "$T/two" 2>"$T/said"
  grep -q "is draft 'two', not 'one'" "$T/said" || fail "$(cat "$T/said")"
  mountpoint -q "$T/two" || fail 'the view of another draft was taken away'
  sl -d two unmount "$T/two"
  ! mountpoint -q "$T/two" || fail 'still mounted'
  sl -d two mount "$T/two" >/dev/null
  (cd "$T" && sl unmount two/)
  ! mountpoint -q "$T/two" || fail 'the wrong one'
  mountpoint -q "$T/one" || fail 'both'
  exits 2 sl unmount "$T/two" 2>/dev/null
  kill -9 "$(sl drafts --json | jq '.drafts[] | select(.name == "one").daemon')"
  eventually dead "$T/one"
  sl unmount "$T/one" 2>"$T/said"
  grep -q 'cleared a dead mount' "$T/said" || fail "$(cat "$T/said")"
  # One that is not open any more, and still shown: an older version left it so.
  sl -d one mount "$T/one" >/dev/null
  local draft
  for draft in "$XDG_STATE_HOME"/stoplog/drafts/*/draft.json; do
    jq '.state = "committed"' "$draft" >"$T/json" && cat "$T/json" >"$draft"
  done
  sl status >"$T/said" 2>&1
  grep -q "draft 'one', which is committed, is still mounted" "$T/said" || fail "$(cat "$T/said")"
  sl unmount
  ! mountpoint -q "$T/one" || fail 'still mounted'
}

both_modes shown
both_modes elsewhere
both_modes after_a_commit
both_modes of_another_draft
