#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A draft goes on after it was committed, discarded, or looked at long ago: what
# was dropped does not come back, what is held is not dropped, and no approval
# of what is gone stands in the way.
. "$(dirname "$0")/lib.sh" || exit 1
needs jq git
needs_fuse

state_of() { sl drafts --json | jq -r ".drafts[] | select(.name == \"$1\").state"; }
draft_file() {
  echo "$XDG_STATE_HOME/stoplog/drafts/$(sl drafts --json | jq -r ".drafts[] | select(.name == \"$1\").id")/$2"
}
names() { sl "$@" status --json 2>/dev/null | jq -r '[.changes[].path] | join(" ")'; }

# A harness that always uses the same name.
same_name() {
  sl -d x run --quiet -- sh -c 'echo bad >bad'
  sl -d x discard -y >/dev/null 2>&1
  exits 2 sl -d x commit -a -y 2>"$T/said"
  grep -q 'was discarded' "$T/said" || fail "$(cat "$T/said")"
  sl -d x run --quiet -- sh -c 'echo good >good' 2>"$T/said"
  grep -q "that was discarded is 'x-" "$T/said" || fail "$(cat "$T/said")"
  same good "$(names -d x)"
  sl -d x commit -a -y >/dev/null 2>&1
  test -e good && test ! -e bad || fail 'what was discarded was committed'
  same committed "$(state_of x)"
  sl -d x run --quiet -- sh -c 'echo more >more'
  same open "$(state_of x)"
  same more "$(names)" 'it is the current one again'
  sl -d x commit -a -y >/dev/null 2>&1
  sl -d x mount "$T/v" >/dev/null
  same open "$(state_of x)"
  echo y >"$T/v/y"
  sl unmount
  same y "$(names)"
}

# As an older version, or a crash at the wrong moment, may have left it.
gc_keeps_work() {
  sl -d x run --quiet -- sh -c 'echo held >held'
  local file
  file=$(draft_file x draft.json)
  kill "$(sl drafts --json | jq '.drafts[] | select(.name == "x").daemon')"
  eventually no_daemon
  jq '.state = "committed"' "$file" >"$T/json" && cat "$T/json" >"$file"
  sl gc >"$T/said" 2>&1
  grep -q 'something is held in it' "$T/said" || fail "$(cat "$T/said")"
  same held "$(names -d x)"
}
no_daemon() { sl drafts --json | jq -e 'all(.drafts[]; .daemon == null)' >/dev/null; }

# A view goes: that paths of its draft were discarded, or a commit undone, does
# not end it, nor do states that have names.
view_goes() {
  sl mount "$T/v" >/dev/null
  echo a >"$T/v/a"
  sl discard -y a >/dev/null
  sl unmount
  same open "$(sl drafts --json | jq -r '.drafts[0].state')"
  sl mount "$T/v" >/dev/null
  echo a >"$T/v/a"
  sl snapshot -m good >/dev/null
  sl commit -a -y >/dev/null 2>&1
  sl unmount
  same open "$(sl drafts --json | jq -r '.drafts[0].state')"
  sl rollback good >/dev/null 2>&1
  # The current draft's dead view goes first, a living one of another stays.
  sl mount "$T/v" >/dev/null
  sl -d other mount "$T/o" >/dev/null
  sl switch "$(sl drafts --json | jq -r '.drafts[] | select(.name != "other").name')" >/dev/null 2>&1
  kill -9 "$(sl drafts --json | jq '.drafts[] | select(.name != "other").daemon')"
  eventually dead "$T/v"
  sl unmount 2>"$T/said"
  grep -q 'cleared a dead mount' "$T/said" || fail "$(cat "$T/said")"
  mountpoint -q "$T/o" || fail 'the living view of another draft was taken'
  sl -d other unmount
}
# Not by a listing: one that the kernel has from the last moment shows for ever.
dead() { ! stat -f "$1" >/dev/null 2>&1; }

# What was approved is no change any more.
approval_of_nothing() {
  sl -d x run --quiet -- sh -c 'echo f >f; echo g >g'
  sl approve f >/dev/null 2>&1
  sl run --quiet -- rm f
  exits 3 sl commit 2>/dev/null
  sl approve f 2>"$T/said"
  grep -q 'no change any more' "$T/said" || fail "$(cat "$T/said")"
  sl approve g >/dev/null 2>&1
  sl commit >/dev/null 2>&1
  test -e g && test ! -e f
  # A commit whose process died before it could say so.
  sl run --quiet -- sh -c 'echo h >h; echo i >i'
  sl approve h >/dev/null 2>&1
  local plan
  plan=$(draft_file x plan.json)
  cp "$plan" "$T/plan"
  sl commit >/dev/null 2>&1
  cat "$T/plan" >"$plan"
  local here
  here=$(printf %s "$PWD" | sha256sum | cut -c1-16)
  rm "$XDG_STATE_HOME/stoplog/commits/$here/commits/2.rebased"
  sl status >/dev/null 2>&1
  same '[]' "$(jq -c '[.decisions[].path]' "$plan")"
  sl commit -a -y >/dev/null 2>&1
  test -e h && test -e i
}

both_modes same_name
both_modes gc_keeps_work
both_modes view_goes
both_modes approval_of_nothing
