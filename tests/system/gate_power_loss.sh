#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The power goes away during a commit: of what was written to the disk since its
# last flush all is there, or some, or a part of some. After the next command
# the real tree is all old or all new, and the draft knows which.
#
# scripts/sync-mutants says with ONLY which of the commits to try alone, and with
# SYNC what to do with the syncs of its process: `list FILE`, or `CALL N` to leave
# the Nth of that system call out.
# ctest: timeout 600
. "$(dirname "$0")/lib.sh" || exit 1
needs jq git python3 mkfs.ext4 strace
needs_fuse
[ "$(id -u)" -eq 0 ] || skip 'only root can mount'
[ -n "${STOPLOG_TEST_INSIDE:-}" ] || skip 'no mount namespace for the disk'

SIZE=$((64 << 20))
loss() { python3 "$TOP/tests/power_loss.py" "$@"; }

begin_disk() {
  mkdir -p "$T/dev" "$T/m"
  "$BUILD/tests/logdisk" "$T/log" "$SIZE" "$T/dev" >"$T/ready" &
  LOGDISK=$!
  eventually grep -q ready "$T/ready"
  mkfs.ext4 -q -F -E lazy_itable_init=0,lazy_journal_init=0 "$T/dev/disk"
  mount -o loop "$T/dev/disk" "$T/m" || skip 'no loop device here'
}
end_disk() {
  umount "$T/m"
  umount "$T/dev"
  wait "$LOGDISK" || fail 'the disk failed'
}
# Another program syncs a file of its own all the time: what a file system has
# put off comes to the disk in the middle of the commit, in its own order.
begin_neighbour() {
  python3 -c '
import os, sys
fd = os.open(sys.argv[1], os.O_WRONLY | os.O_CREAT)
while True:
    os.pwrite(fd, os.urandom(8), 0)
    os.fsync(fd)' "$T/m/neighbour" &
  NEIGHBOUR=$!
  eventually test -s "$T/m/neighbour"
}
end_neighbour() {
  kill "$NEIGHBOUR"
  wait "$NEIGHBOUR" 2>/dev/null || true
}

# The commit or undo itself, slow enough for the neighbour. Without a daemon all
# its syncs are its own.
commit_now() {
  local how=(-e trace=renameat2 -e inject=renameat2:delay_enter=1500 -o /dev/null)
  local call n
  if [ -n "${SYNC:-}" ]; then
    end_daemons
    read -r call n <<<"$SYNC"
    if [ "$call" = list ]; then
      how=(-y -e trace=fsync,fdatasync,syncfs -o "$n")
    else
      how+=(-e trace="renameat2,$call" -e inject="$call:retval=0:when=$n")
    fi
  fi
  [ "${2:-}" = alone ] || begin_neighbour
  strace -f "${how[@]}" "$STOPLOG" "$1" >/dev/null 2>&1
  [ "${2:-}" = alone ] || end_neighbour
}
no_daemon() { [ -z "$(stoplog_pids)" ]; }
end_daemons() {
  local pid
  for pid in $(stoplog_pids); do kill "$pid" 2>/dev/null || true; done
  eventually no_daemon
}
listing() {
  (cd "$W" && find . -path ./.git -prune -o -printf '%p %y %m %n %l ' \
    \( -type f -exec sha256sum {} \; -o -printf '\n' \) | LC_ALL=C sort)
}
changes() { sl status --json 2>/dev/null | jq -r '.changes[] | .kind + " " + .path'; }

# A commit of a bit of everything, beneath $T/m, or ($3) its undo; OLD and NEW are
# its two sides, HELD what is reviewed, BEGIN and END entries of the log before and
# after it.
commit_on_disk() {
  begin_disk
  mkdir "$T/m/state"
  export XDG_STATE_HOME=$T/m/state
  if [ "$1" = elsewhere ]; then
    # Another mount: the stage is in the workspace.
    mkdir "$T/state"
    mount --bind "$T/m/state" "$T/state"
    export XDG_STATE_HOME=$T/state
  fi
  workspace "$T/m/w"
  local i
  for i in $(seq 12); do seq "$i" "$((i * 100))" >"old$i"; done
  mkdir -p dir/sub && echo x >dir/sub/x && ln -s old1 link && ln old12 twin
  git add -A && git commit -qm more
  sync -f .
  sl run --quiet -- sh -c '
    for i in 1 2 3 4 5; do seq $i $((i * 150)) >old$i; done
    rm old6 old7; mv old8 dir/old8; chmod 600 old9; mv dir/sub moved
    mkdir -p n/e/w; for i in 1 2 3 4; do seq $i 5000 >n/e/w/$i; done
    rm link; ln -s old2 link; ln old10 n/tenth; rm old11; mkdir old11; echo i >old11/in'
  sl approve --all --danger >/dev/null 2>&1
  if [ "$3" = undo ]; then sl commit >/dev/null 2>&1; fi
  OLD=$(listing)
  HELD=$(changes)
  # The draft is on the disk; what follows is the commit's own.
  if [ "$2" = synced ]; then sync -f .; fi
  local begin
  begin=$(stat -c %s "$T/log")
  commit_now "$3"
  NEW=$(listing)
  end_daemons
  cd "$T"
  if [ "$1" = elsewhere ]; then umount "$T/state"; fi
  end_disk
  read -r BEGIN END <<<"$(loss count "$T/log" "$begin")"
}

# The machine is started again.
BOOT=/proc/sys/kernel/random/boot_id
restart() {
  if [ -e "$T/boot" ]; then umount "$BOOT"; fi
  cat /proc/sys/kernel/random/uuid >"$T/boot"
  mount --bind "$T/boot" "$BOOT"
}

# After CUT entries, with SEED: what the next command makes of it. For an undo the
# draft is nobody's current one, and nothing of it is synced after that.
check_cut() {
  local where=$1 cut=$2 seed=$3 now named other
  restart
  loss make "$T/log" "$SIZE" "$T/image" "$cut" "$seed"
  # After every second restart the disk has another number.
  other=
  if [ $((seed % 2)) -eq 0 ]; then other=$(losetup --find --show "$T/spare"); fi
  mount -o loop "$T/image" "$T/m"
  [ -z "$other" ] || losetup -d "$other"
  if [ "$where" = elsewhere ]; then mount --bind "$T/m/state" "$T/state"; fi
  cd "$W"
  # What nobody had synced may be lost before the commit syncs it; then it is
  # named, and nothing of it is in the real tree.
  named=
  if ! sl status >"$T/out" 2>&1 || grep -q damaged "$T/out"; then
    { [ "$4" = unsynced ] && grep -q damaged "$T/out"; } ||
      fail "cut $cut, seed $seed: $(cat "$T/out")"
    named=damaged lost=$((lost + 1))
  fi
  now=$(listing)
  [ -z "$named" ] || same "$OLD" "$now" "cut $cut, seed $seed: damaged and written"
  case $now in
  "$OLD") old=$((old + 1)) ;;
  "$NEW") new=$((new + 1)) ;;
  *) fail "cut $cut, seed $seed: a mixture: $(diff <(echo "$OLD") <(echo "$now"))" ;;
  esac
  test -z "$(find . -name '.stoplog*' -not -name .stoplog.toml)" || fail "cut $cut: a temporary file remains"
  if [ "$now" = "$NEW" ]; then
    same '' "$(changes)" "cut $cut, seed $seed: committed and still held"
  elif [ "$4" = synced ]; then
    same "$HELD" "$(changes)" "cut $cut, seed $seed: neither committed nor held"
  fi
  # What nobody had synced and went with the power is named, and no damage.
  sl log --verify >"$T/verify" 2>&1 ||
    fail "cut $cut, seed $seed: $(cat "$T/verify")"
  ! grep -q 'had not reached the disk' "$T/verify" || told=$((told + 1))
  if [ "$5" = commit ] && [ "$now" = "$NEW" ] && [ $((new % 8)) -eq 1 ]; then
    sl undo >/dev/null 2>&1
    same "$OLD" "$(listing)" "cut $cut, seed $seed: after the undo"
  fi
  cd "$T"
  if [ "$where" = elsewhere ]; then umount "$T/state"; fi
  umount "$T/m"
}

# What a new draft's first command synced is found by the next command.
first_command() {
  local entries seed
  T=$T/first
  mkdir "$T"
  begin_disk
  mkdir "$T/m/state"
  export XDG_STATE_HOME=$T/m/state
  workspace "$T/m/w"
  sync -f .
  mkfifo "$T/pipe"
  sl run --quiet -- sh -c 'echo kept >g && sync g && echo done && read -r line' \
    <>"$T/pipe" >"$T/synced" &
  eventually grep -q done "$T/synced"
  entries=$(stat -c %s "$T/log")
  kill "$!" || true
  wait "$!" || true
  end_daemons
  cd "$T"
  end_disk
  read -r entries _ <<<"$(loss count "$T/log" "$entries")"
  for seed in 0 1 2 3; do
    loss make "$T/log" "$SIZE" "$T/image" "$entries" "$seed"
    mount -o loop "$T/image" "$T/m"
    cd "$W"
    same kept "$(sl cat g)" "seed $seed: a synced file of a new draft"
    same 'added g' "$(changes)" "seed $seed"
    end_daemons
    cd "$T"
    umount "$T/m"
  done
}
[ -n "${ONLY:-}" ] || (first_command)

# The head of the record reaches the disk, and the entries that it counts do not:
# nobody syncs those of commands. They are named as lost, and the record goes on;
# what an approval synced is there, or the record is damaged.
record_lost() {
  local draft cut
  T=$T/record
  mkdir "$T"
  begin_disk
  mkdir "$T/m/state"
  export XDG_STATE_HOME=$T/m/state
  workspace "$T/m/w"
  sl run --quiet -- sh -c 'echo new >new'
  sl approve --all >/dev/null 2>&1
  sync -f .
  for cut in 1 2 3; do sl run --quiet -- true; done
  draft=$(echo "$XDG_STATE_HOME"/stoplog/drafts/????????)
  sync "$draft/draft.json"
  read -r cut _ <<<"$(loss count "$T/log" "$(stat -c %s "$T/log")")"
  end_daemons
  cd "$T"
  end_disk
  loss make "$T/log" "$SIZE" "$T/image" "$cut" 0
  mount -o loop "$T/image" "$T/m"
  cd "$W"
  # While the machine runs, nothing can have been lost.
  exits 3 sl log --verify >/dev/null 2>&1
  restart
  sl log --verify >"$T/verify" 2>&1 || fail "$(cat "$T/verify")"
  grep -q 'entries 3 to 5 had not reached the disk' "$T/verify" || fail "$(cat "$T/verify")"
  same 3 "$(sl log --verify --json | jq .lost)"
  sl approve --all >/dev/null 2>&1
  prints 'entry 3: entries 3 to 5 had not reached the disk' sh -c '"$STOPLOG" log --verify 2>&1'
  sed -i 2,3d "$draft/ledger.jsonl"
  restart
  exits 3 sl log --verify >/dev/null 2>&1
  end_daemons
  umount "$BOOT"
  cd "$T"
  umount "$T/m"
}
[ -n "${ONLY:-}" ] || (record_lost)

# Cuts all over the commit (CUTS, 24 of each kind), each as it was written and
# with losses.
power_lost() {
  local cut step seed
  if [ -n "${ONLY:-}" ] && [ "$ONLY" != "$*" ]; then exit 0; fi
  T=$T/$1-$2-$3
  mkdir "$T"
  truncate -s 1M "$T/spare"
  commit_on_disk "$1" "$2" "$3"
  old=0 new=0 lost=0 told=0
  [ $((END - BEGIN)) -gt 20 ] || fail "nothing was written: $BEGIN to $END"
  step=$(((END - BEGIN) / ${CUTS:-24} + 1))
  for ((cut = BEGIN; cut <= END; cut += step)); do
    for seed in 0 "$cut"; do check_cut "$1" "$cut" "$seed" "$2" "$3"; done
  done
  check_cut "$1" "$END" 0 "$2" "$3"
  umount "$BOOT"
  echo "$3, $1, $2: entries $BEGIN to $END: $old old ($lost of them with losses in the draft), $new new, $told with losses in the record"
  [ "$old" -gt 0 ] && [ "$new" -gt 0 ] || fail 'only one side was seen'
}
# The state is on a disk that lost nothing, and knows of no commit under way. The
# neighbour would sync what the commit must.
lost_after_commit() {
  if [ -n "${ONLY:-}" ] && [ "$ONLY" != 'on two disks' ]; then exit 0; fi
  T=$T/on-two-disks
  mkdir "$T" "$T/state"
  export XDG_STATE_HOME=$T/state
  begin_disk
  workspace "$T/m/w"
  sync -f .
  sl run --quiet -- sh -c 'echo new >new; echo more >>README.md'
  sl approve --all >/dev/null 2>&1
  commit_now commit alone
  local cut end now
  read -r cut end <<<"$(loss count "$T/log" "$(stat -c %s "$T/log")")"
  now=$(listing)
  end_daemons
  cd "$T"
  end_disk
  loss make "$T/log" "$SIZE" "$T/image" "$cut" 0
  mount -o loop "$T/image" "$T/m"
  cd "$W"
  sl status >/dev/null
  same "$now" "$(listing)" 'after the restart'
  cd "$T"
  umount "$T/m"
}
(lost_after_commit)
(power_lost beside synced commit)
(power_lost elsewhere synced commit)
(power_lost beside unsynced commit)
(CUTS=$(((${CUTS:-24} + 2) / 3)) && power_lost beside synced undo)
