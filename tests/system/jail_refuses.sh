#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# When a wall cannot be built, or a limit that was asked for cannot be held, the
# command never starts: exit 5, one sentence with the cause, and a hint.
# ctest: serial
# ctest: timeout 300
. "$(dirname "$0")/lib.sh" || exit 1
. "$TOP/tests/system/jail/adapter.sh"

# refused WHAT OPTIONS...
refused() {
  case_ "$1"
  shift
  rm -f "$P/started"
  RC=0
  ${LAUNCH:-} "$BUILD/tests/jailrun" -w "$P" "$@" -- sh -c 'touch started; echo STARTED' \
    </dev/null >"$OUT" 2>&1 || RC=$?
  [ "$RC" = 5 ] || {
    show "exit $RC"
    fail "$CASE"
  }
  lacks STARTED
  [ ! -e "$P/started" ] || fail "$CASE: it ran"
  has "^${SAYS:-jailrun}: (cannot |the jail|this kernel)"
  has '^hint: .'
  # One sentence and one hint.
  same 2 "$(wc -l <"$OUT")" "$CASE: lines"
}
# denied WHAT ERRNO CALLS [PATTERN]: the kernel refuses these calls.
denied() {
  local LAUNCH="python3 $TOP/tests/system/jail/deny.py $2 $3"
  refused "$1"
  has "${4:-.}"
}
# The same for the whole program; each time in a daemon of its own.
denied_all() {
  case_ "stoplog: $1"
  RC=0
  python3 "$TOP/tests/system/jail/deny.py" "$2" "$3" \
    "$STOPLOG" run --new --quiet -- sh -c 'echo STARTED' </dev/null >"$OUT" 2>&1 || RC=$?
  [ "$RC" = 5 ] || {
    show "exit $RC"
    fail "$CASE"
  }
  lacks STARTED
  has '^stoplog: (cannot |the jail|this kernel)'
  has '^hint: .'
}
refusing_kernel() {
  denied 'user namespaces forbidden (AppArmor)' EACCES clone3 '^hint: .*AppArmor'
  denied 'user namespaces forbidden (seccomp of a container)' EPERM clone3 'hint: .*namespaces'
  # Ubuntu's AppArmor lets the namespace be made, without any capability in it.
  denied 'mounts refused (AppArmor)' EACCES mount,open_tree,fsopen,fsmount,move_mount,mount_setattr mount
  denied 'no new mount API' ENOSYS open_tree,fsopen,fsmount,move_mount,mount_setattr
  denied 'no system call filters' EINVAL seccomp filter
  denied 'no Landlock' ENOSYS landlock_create_ruleset Landlock
  denied 'Landlock switched off' EOPNOTSUPP landlock_create_ruleset Landlock
  # The calls that FUSE's own mount needs are left alone.
  if [ "$MODE" = root ] && { : <>/dev/fuse; } 2>/dev/null; then
    denied_all 'no new mount API' ENOSYS open_tree,fsopen,fsmount,move_mount,mount_setattr
    denied_all 'no system call filters' EINVAL seccomp
    denied_all 'no Landlock' ENOSYS landlock_create_ruleset
  fi
}
# Control groups that cannot be written: what was asked for and needs one is
# refused; the rest is held by other means.
read_only_groups() {
  [ "$MODE" = root ] || return 0
  printf '%s\n' 'grep -E " cgroup2? " /proc/mounts | while read -r _ at _; do' \
    'mount -o remount,bind,ro "$at"; done' 'exec "$@"' >"$P/freeze.sh"
  local LAUNCH="unshare -m --propagation private bash $P/freeze.sh"
  refused 'control groups not writable' -l cpus=1
  has "cannot hold the limit 'cpus'"
  case_ 'other limits without control groups'
  JX 'memory=100M pids=50 time=30s' 'python3 -c "x=bytearray(1<<30)"; sleep 5; echo SURVIVED'
  same memory "$(outcome killed_by)" "$CASE"
  same poll "$(outcome held_memory)" "$CASE"
  same rlimit "$(outcome held_pids)" "$CASE"
  lacks SURVIVED
}

attack() {
  local wall
  for wall in root proc pidns netns usernslimit caps nnp seccomp landlock identity; do
    refused "$wall fails" -f "$wall"
  done

  refusing_kernel
  read_only_groups

  # The real thing: no user namespace may be made here.
  case_ 'no user namespaces'
  unshare -U -r true 2>/dev/null || fail 'cannot prepare'
  LAUNCH="unshare -U -r bash $P/forbid.sh"
  printf '%s\n' 'echo 0 >/proc/sys/user/max_user_namespaces' 'exec "$@"' >"$P/forbid.sh"
  refused 'no user namespaces' -c /
  has '^hint: .*max_user_namespaces'
  LAUNCH=

  if [ "$MODE" = user ]; then
    # Nobody gave an ordinary user a control group here.
    if [ "$(groups_writable)" = no ]; then
      refused 'a limit that cannot be held' -l cpus=1
      has "cannot hold the limit 'cpus'"
      has '^hint: '
    fi
  fi

  # A default that cannot be held does not refuse.
  case_ 'all is well without'
  "$BUILD/tests/jailrun" -w "$P" -- sh -c 'echo STARTED' >"$OUT" 2>&1 </dev/null
  has STARTED
}

groups_writable() {
  local controller path
  while IFS=: read -r _ controller path; do
    [ ! -w "/sys/fs/cgroup/$controller$path" ] || {
      echo yes
      return
    }
  done </proc/self/cgroup
  echo no
}

# An ordinary user in a container whose /proc is masked in part.
masked_proc() {
  [ "$(id -u)" -eq 0 ] || return 0
  prepare_user
  mkdir -p "$T/user/masked"
  chown "$TEST_UID:$TEST_UID" "$T/user/masked"
  mount -t tmpfs none /proc/fs
  local rc=0
  as_user "$BUILD/tests/jailrun" -w "$T/user/masked" -- true >"$T/out" 2>&1 || rc=$?
  umount /proc/fs
  same 5 "$rc" 'a masked /proc'
  grep -q 'proc /proc' "$T/out" || fail "$(cat "$T/out")"
}

ADAPTER=plain
export ATTACK=attack
ATTACK_plain
masked_proc
