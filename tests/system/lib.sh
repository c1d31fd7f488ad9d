# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# Helpers for tests of the whole program: one script a behaviour.
#
#   . "$(dirname "$0")/lib.sh" || exit 1
#   workspace                      # cd into a fresh git work tree
#   sl run -- sh -c 'echo x > a'   # $STOPLOG
#   test ! -e a || fail 'a write reached the real tree'
#
# The environment names the parts: STOPLOG (the program), TOP (the sources),
# BUILD (the build tree); by hand, `bash tests/system/x.sh` takes build/. A script fails when a command fails (set -eu), skips
# with `skip REASON`, and need not clean up: run by root, it runs in a process
# and a mount namespace of its own, so that whatever it starts or mounts ends
# with it, even when it is killed. All its files lie beneath $T, removed at the
# end; HOME and XDG_* point there too, so that the real home is never touched.
# A test also fails when stoplog left a process, a mount or a control group
# behind after its daemons were asked (SIGTERM) to end. A test that kills a
# daemon lets another command follow, which clears up after it.
#
#   not CMD...             CMD must fail
#   exits N CMD...         CMD must exit with N
#   same WANT GOT [WHAT]   two strings must be equal
#   prints REGEX CMD...    CMD must succeed and print a line that matches; what
#                          is piped to `grep -q` may die of SIGPIPE instead
#   eventually CMD...      CMD must succeed within $PATIENCE (60) seconds
#   skip REASON            leave, counted as skipped
#   fail MESSAGE           leave, counted as failed
#   workspace [DIR]        make $T/w (or DIR) with a small git repository; cd
#   as_user CMD...         run CMD as an ordinary user who may open /dev/fuse
#   both_modes FUNCTION    run FUNCTION in a fresh workspace as root, then again
#                          as an ordinary user ($MODE is root or user)
#   needs PROGRAM...       skip when one is missing
#   needs_fuse             skip when /dev/fuse cannot be opened
#
# "ctest: serial" and "ctest: timeout SECONDS" in a comment among a script's
# first lines set how ctest runs it.
set -euo pipefail

: "${TOP:=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)}"
: "${BUILD:=$TOP/build}"
: "${STOPLOG:=$BUILD/stoplog}"
export STOPLOG TOP BUILD

# The number of an ordinary user that no machine has; never in /etc/passwd.
TEST_UID=65533

skip() {
  echo "skip: $*"
  trap - ERR
  exit 77
}
fail() {
  echo "fail: $*" >&2
  trap - ERR
  exit 1
}
not() {
  if "$@"; then fail "should have failed: $*"; fi
}
exits() {
  local want=$1 got=0
  shift
  "$@" || got=$?
  [ "$got" -eq "$want" ] || fail "exit $got, not $want: $*"
}
same() {
  [ "$1" = "$2" ] || fail "${3:-different}: wanted «$1», got «$2»"
}
prints() {
  local want=$1 text
  shift
  text=$("$@") || fail "exit $?: $*"
  grep -q -- "$want" <<<"$text" || fail "no «$want» from $*: $text"
}
eventually() {
  local end=$((SECONDS + ${PATIENCE:-60}))
  until "$@"; do
    [ "$SECONDS" -lt "$end" ] || fail "still not so after ${PATIENCE:-60} s: $*"
    sleep 0.05
  done
}
needs() {
  local program
  for program in "$@"; do
    command -v "$program" >/dev/null || skip "needs $program"
  done
}
needs_fuse() {
  { : <>/dev/fuse; } 2>/dev/null || skip '/dev/fuse cannot be opened'
}
sl() { "$STOPLOG" "$@"; }

# A home of its own for the current user beneath $1.
enter_home() {
  mkdir -p "$1"/{home,state,config,cache,run,data}
  chmod 700 "$1"/run
  export HOME=$1/home XDG_STATE_HOME=$1/state XDG_CONFIG_HOME=$1/config
  export XDG_CACHE_HOME=$1/cache XDG_RUNTIME_DIR=$1/run XDG_DATA_HOME=$1/data
  export GIT_CONFIG_NOSYSTEM=1 GIT_AUTHOR_NAME=t GIT_AUTHOR_EMAIL=t@t
  export GIT_COMMITTER_NAME=t GIT_COMMITTER_EMAIL=t@t
  unset STOPLOG_DRAFT GIT_DIR GIT_WORK_TREE GIT_INDEX_FILE
}

workspace() {
  W=${1:-$T/w}
  mkdir -p "$W/src"
  cd "$W"
  git init -q -b main
  printf 'hello\n' >README.md
  printf 'int main(void) { return 0; }\n' >src/main.c
  printf '*.o\nbuild/\n' >.gitignore
  git add -A
  git commit -qm first
}

# Once in a test's own mount namespace: a /dev/fuse that anyone may open, and a
# name for the user, without which fusermount3 refuses.
prepare_user() {
  [ ! -e "$T/user" ] || return 0
  mkdir -m 755 "$T/user"
  if [ -e /dev/fuse ]; then
    # On a tmpfs of our own: the file system beneath $T may be nodev.
    mkdir "$T/dev"
    mount -t tmpfs -o mode=755 stoplog-test "$T/dev"
    mknod -m 666 "$T/dev/fuse" c 10 229
    chmod 666 "$T/dev/fuse"
    mount --bind "$T/dev/fuse" /dev/fuse
  fi
  cp /etc/passwd "$T/passwd"
  cp /etc/group "$T/group"
  echo "stoplog-test:x:$TEST_UID:$TEST_UID::$T/user/home:/bin/bash" >>"$T/passwd"
  echo "stoplog-test:x:$TEST_UID:" >>"$T/group"
  mount --bind "$T/passwd" /etc/passwd
  mount --bind "$T/group" /etc/group
  (enter_home "$T/user")
  chown -R "$TEST_UID:$TEST_UID" "$T/user"
}
as_user() {
  if [ "$(id -u)" -ne 0 ]; then
    "$@"
    return
  fi
  [ -n "${STOPLOG_TEST_INSIDE:-}" ] || skip 'no mount namespace for a test user'
  prepare_user
  (
    enter_home "$T/user"
    export USER=stoplog-test LOGNAME=stoplog-test
    exec setpriv --reuid "$TEST_UID" --regid "$TEST_UID" --clear-groups \
      --inh-caps=-all -- "$@"
  )
}

both_modes() {
  local functions
  functions=$(declare -f)
  if [ "$(id -u)" -eq 0 ]; then
    echo "--- $1 as root"
    (
      export MODE=root
      workspace "$T/w-$1"
      "$1"
    )
  fi
  echo "--- $1 as an ordinary user"
  if [ "$(id -u)" -eq 0 ]; then prepare_user; else mkdir -p "$T/user"; fi
  as_user bash -c "set -euo pipefail
    $functions
    T=$T/user MODE=user
    workspace $T/user/w-$1
    $1"
}

# --- what follows runs at once -------------------------------------------

if [ "$(id -u)" -eq 0 ] && [ -z "${STOPLOG_TEST_INSIDE:-}" ] &&
  unshare --mount --pid --fork --mount-proc true 2>/dev/null; then
  STOPLOG_TEST_INSIDE=1 exec unshare --mount --propagation private --pid \
    --fork --kill-child --mount-proc bash "$0" "$@"
fi

T=$(mktemp -d "${TMPDIR:-/tmp}/stoplog-test.XXXXXX")
chmod 755 "$T"

# Processes of the program under test that we may see and that run for $T.
stoplog_pids() {
  local exe pid
  for exe in /proc/[0-9]*/exe; do
    pid=${exe#/proc/}
    pid=${pid%/exe}
    [ "$(readlink "$exe" 2>/dev/null)" = "$STOPLOG_EXE" ] || continue
    if [ -n "${STOPLOG_TEST_INSIDE:-}" ] ||
      grep -qzF "$T" "/proc/$pid/environ" 2>/dev/null; then
      echo "$pid"
    fi
  done
}
STOPLOG_EXE=$(readlink -f "$STOPLOG" || echo "$STOPLOG")

# Where root may, each test has a control group (of version 1) of its own, in
# which stoplog then makes its groups: what is left there is this test's.
enter_own_group() {
  local controller path
  OWN_GROUP='' PARENT_GROUP=''
  [ -n "${STOPLOG_TEST_INSIDE:-}" ] || return 0
  while IFS=: read -r _ controller path; do
    [ "$controller" = pids ] || continue
    PARENT_GROUP=/sys/fs/cgroup/pids${path%/}
    mkdir "$PARENT_GROUP/test-$(basename "$T")" 2>/dev/null || continue
    OWN_GROUP=$PARENT_GROUP/test-$(basename "$T")
    echo 0 >"$OWN_GROUP/cgroup.procs"
  done </proc/self/cgroup
}
groups_left() {
  [ -z "$OWN_GROUP" ] || find "$OWN_GROUP" -mindepth 1 -depth -type d
}

own_mounts() {
  awk -v t="$T/" 'index($5, t) == 1 && $0 ~ / - fuse/ { print $5 }' \
    /proc/self/mountinfo
}

# Whatever the test started itself and left goes back with it.
leave_own_group() {
  local pid tries=0
  [ -n "$OWN_GROUP" ] || return 0
  while ! rmdir "$OWN_GROUP" 2>/dev/null && [ $((tries += 1)) -lt 100 ]; do
    for pid in $(cat "$OWN_GROUP/cgroup.procs"); do
      echo "$pid" >"$PARENT_GROUP/cgroup.procs"
    done 2>/dev/null
    sleep 0.02
  done
}

clean_up() {
  local status=$? pid tries=0 left
  trap - EXIT ERR
  set +eu
  cd /
  for pid in $(stoplog_pids); do kill -TERM "$pid" 2>/dev/null; done
  while [ -n "$(stoplog_pids)" ] && [ $((tries += 1)) -lt 100 ]; do
    sleep 0.05
  done
  left=$(stoplog_pids)
  if [ -n "$left" ]; then
    for pid in $left; do
      echo "left running: $pid $(tr '\0' ' ' <"/proc/$pid/cmdline")" >&2
      kill -KILL "$pid" 2>/dev/null
    done
    [ "$status" -ne 0 ] || status=1
  fi
  for left in $(own_mounts); do
    echo "left mounted: $left" >&2
    umount -l "$left"
    [ "$status" -ne 0 ] || status=1
  done
  for left in $(groups_left); do
    echo "left control group: $left" >&2
    rmdir "$left"
    [ "$status" -ne 0 ] || status=1
  done
  [ -z "${STOPLOG_TEST_INSIDE:-}" ] ||
    awk -v t="$T/" 'index($5, t) == 1 { print $5 }' /proc/self/mountinfo |
    sort -r | while read -r left; do umount -l "$left"; done
  leave_own_group
  chmod -R u+rwx "$T" 2>/dev/null
  rm -rf --one-file-system "$T"
  exit "$status"
}
trap clean_up EXIT
trap 'exit 130' INT TERM HUP
trap 'echo "failed: line $LINENO: $BASH_COMMAND" >&2' ERR
set -E

enter_own_group
enter_home "$T"
cd "$T"
