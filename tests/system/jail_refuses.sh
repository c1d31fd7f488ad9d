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
  has '^jailrun: cannot |^jailrun: the jail'
}

attack() {
  local wall
  for wall in root proc pidns netns usernslimit caps nnp seccomp landlock identity; do
    refused "$wall fails" -f "$wall"
  done

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
