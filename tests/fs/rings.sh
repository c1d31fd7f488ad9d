# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# The kernel's switch for FUSE over io_uring, for a test that turns it. Sourced
# before lib.sh. One test on this machine has it at a time; another waits. A
# process outside of the test waits for its end, however it comes, and sets the
# switch back: killed tests run no trap, and the next one would take what was
# left for what is to be put back.
#
#   $RINGS_SWITCH    its path
#   $RINGS_BEFORE    what it was; unset: not root, or there is no switch
RINGS_SWITCH=${RINGS_SWITCH:-/sys/module/fuse/parameters/enable_uring}
RINGS_LOCK=${RINGS_LOCK:-/run/lock/stoplog-test-rings}

keep_rings() {
  local dir
  dir=$(mktemp -d "${TMPDIR:-/tmp}/stoplog-test.XXXXXX")
  mkfifo "$dir/life" "$dir/before"
  # Whatever the test starts has it too: the end is the end of all.
  exec 9<>"$dir/life" 7<"$dir/life"
  # In a session of its own and nobody's child: who kills a test with all that
  # it started does not mean this.
  # shellcheck disable=SC2016
  setsid -f bash -c 'exec 8>>"$3" && flock 8 || exit 1
    before=$(cat "$2") || exit 1
    exec 6<>"$1/before" && echo "$before" >&6
    cat
    echo "$before" >"$2"' keeper "$dir" "$RINGS_SWITCH" "$RINGS_LOCK" \
    <&7 >/dev/null 2>&1 7<&- 9>&-
  exec 7<&-
  read -r RINGS_BEFORE <"$dir/before" || return 1
  rm -r "$dir"
  export RINGS_BEFORE
}
if [ "$(id -u)" -eq 0 ] && [ -e "$RINGS_SWITCH" ] &&
  [ -z "${RINGS_BEFORE:-}" ]; then
  keep_rings || {
    echo 'fail: nobody keeps the switch for io_uring' >&2
    exit 1
  }
fi
