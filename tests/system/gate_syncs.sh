#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What a commit and an undo sync, and before what. gate_power_loss.sh takes the
# power away, but on an ext4, which keeps the order of names by itself: what is
# needed where a file system promises nothing of the kind is held here.
. "$(dirname "$0")/lib.sh" || exit 1
needs strace git
needs_fuse
[ "$(id -u)" -eq 0 ] || skip 'only root can mount'
[ -n "${STOPLOG_TEST_INSIDE:-}" ] || skip 'no mount namespace for a second disk'
strace -o /dev/null true 2>/dev/null || skip 'strace may not trace'

# The calls in order, with the names that are another each time left out, those
# that failed, and what has nothing to do with it.
calls() {
  sed -nE 's/^[0-9]+ +//; / = 0$/!d; /probe-|draft\.synced/d; s/ = 0$//
    s#<'"$T"'/(state|two)/stoplog/commits/[0-9a-f]{16}/?#<state:#g
    s#<'"$T"'/(state|two)/stoplog/drafts/[^/>]*/?#<draft:#g
    s#<'"$T"'/(state|two)/stoplog/objects/?#<objects:#g
    s#<'"$T"'/w[^/>]*/?#<tree:#g
    /draft:segments/d; s#\.stoplog-[0-9a-f]{16}(\.tmp)?#TEMP#g; s#[0-9a-f]{32}\.pack#PACK#
    s#state:pending/stage#stage#; s#tree:TEMP#stage#
    s/^(f|fdata)sync\([0-9]+<([^>]*)>\)/sync \2/p
    s/^syncfs\([0-9]+<([^>]*)>\)/sync all of \1/p
    s/^renameat2\([0-9]+<([^>]*)>, "([^"]*)", [0-9]+<([^>]*)>, "([^"]*)".*/move \1 \2 to \3 \4/p
    s/^unlinkat\([0-9]+<([^>]*)>, "([^"]*)".*/remove \1 \2/p
    s/^linkat\(.*<(objects:packs)>.*/write a pack/p
    s/^mkdirat\([0-9]+<tree:>, "TEMP".*/make the stage/p' "$1"
}
no_daemon() { [ -z "$(stoplog_pids)" ]; }
# Without a daemon all of it is in one process.
traced() {
  local pid
  for pid in $(stoplog_pids); do kill "$pid" 2>/dev/null || true; done
  eventually no_daemon
  strace -f -y -o "$T/trace" \
    -e trace=fsync,fdatasync,syncfs,renameat2,unlinkat,mkdirat,linkat \
    "$STOPLOG" "$@" >/dev/null 2>&1
  calls "$T/trace"
}
prepare() {
  workspace "$T/w-$1"
  echo a >a
  echo b >b
  git add -A && git commit -qm more
  sl run --quiet -- sh -c 'echo 1 >>a; rm b; echo n >n'
  sl approve --all >/dev/null
}
# The draft as it is reviewed, before anything else. Whether the daemon had
# synced its segments as it left, or the commit does, is nobody's business.
settled='sync draft:journal/00000001'
# The commit is in the record and told to the draft before that is noted.
told='sync draft:ledger.jsonl
sync draft:TEMP
sync draft:
sync draft:journal/00000001
sync state:commits/TEMP
sync state:commits'

# The stage is with the state, on one disk with the workspace.
prepare beside
same "$settled
sync all of stage
sync state:pending/TEMP
sync state:pending
move tree: b to stage 0
move stage 1 to tree: a
move stage 2 to tree: n
sync all of stage
write a pack
sync all of state:
remove stage 0
remove stage 1
remove state:pending stage
remove state:pending switch
remove state:pending abort.ready
remove state:pending intent
$told
sync draft:TEMP
sync draft:" "$(traced commit)" 'the steps of a commit'
same "$settled
sync all of stage
sync state:pending/TEMP
sync state:pending
move tree: n to stage 0
move stage 1 to tree: a
move stage 2 to tree: b
sync all of stage
write a pack
sync all of state:
remove stage 0
remove stage 1
remove state:pending stage
remove state:pending switch
remove state:pending abort.ready
remove state:pending intent
$told" "$(traced undo)" 'the steps of an undo'

# In the workspace, on another disk: it is on record before it is made, and gone
# for certain before the record of it goes.
mkdir "$T/two"
mount -t tmpfs stoplog-test "$T/two"
export XDG_STATE_HOME=$T/two
prepare elsewhere
same "$settled
sync state:pending/TEMP
sync state:pending
make the stage
sync all of stage
sync all of state:
sync state:pending/TEMP
sync state:pending
move tree: b to stage 0
move stage 1 to tree: a
move stage 2 to tree: n
sync all of stage
write a pack
sync all of state:
remove stage 0
remove stage 1
remove tree: TEMP
sync tree:
remove state:pending switch
remove state:pending abort.ready
remove state:pending intent
$told
sync draft:TEMP
sync draft:" "$(traced commit)" 'the steps of a commit on two disks'
