# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# A tree mounted by build/tests/fsd, for scripts in tests/system. After lib.sh.
#
#   fs_mount BASE MOUNT [OPTIONS...]   waits until it serves
#   fs_ask WORDS...                    one line to fsd, its answer on stdout
#   fs_in CMD...                       CMD where the mount can be seen
#   fs_unmount                         clean end; fails when fsd failed
#   fs_kill                            kill -9, nothing cleared
#   fingerprint DIR                    everything about a tree but its content
#   run_as_user FUNCTION               with lib.sh's ordinary user, in $T/user
#
# Requests go over the device, whatever the kernel's switch for io_uring says,
# unless FSD_RINGS=yes: then the switch decides.
FSD=$BUILD/tests/fsd
export FSD_RINGS=${FSD_RINGS:-no}

fs_mount() {
  local base=$1 mount=$2
  shift 2
  mkdir -p "$mount" "$mount.draft"
  coproc FSD_PROC { exec "$FSD" --base "$base" --draft "$mount.draft" \
    --mount "$mount" "$@"; }
  # shellcheck disable=SC2153
  FS_PID=$FSD_PROC_PID FS_IN=${FSD_PROC[1]} FS_OUT=${FSD_PROC[0]}
  local line=
  read -r -t 60 -u "$FS_OUT" line || fail "fsd did not start"
  same ready "$line"
}
fs_ask() {
  local line
  echo "$*" >&"$FS_IN"
  read -r -t 60 -u "$FS_OUT" line || fail "fsd does not answer '$*'"
  echo "$line"
}
# In a user namespace the mount is in fsd's own mount namespace.
fs_in() {
  if [ "$(readlink "/proc/$FS_PID/ns/mnt")" = "$(readlink /proc/self/ns/mnt)" ]
  then
    "$@"
  else
    local functions
    functions=$(declare -f)
    nsenter --preserve-credentials -U -m -t "$FS_PID" bash -c \
      "set -euo pipefail; T=$T TOP=$TOP BUILD=$BUILD; $functions
       $(printf '%q ' "$@")"
  fi
}
fs_unmount() {
  local pid=$FS_PID status=0
  echo quit >&"$FS_IN"
  wait "$pid" || status=$?
  [ "$status" -eq 0 ] || fail "fsd ended with $status"
}
fs_kill() {
  kill -KILL "$FS_PID"
  wait "$FS_PID" 2>/dev/null || true
}

# Types, modes, owners, sizes, times, links, xattrs; of files atime too. Their
# content is not read, which would change it; who changes that changes ctime.
fingerprint() {
  (
    cd "$1" || exit 1
    find . -printf '%p %y %m %U %G %s %T@ %C@ %n %l\n' | LC_ALL=C sort
    find . -type f -printf '%p %A@\n' | LC_ALL=C sort
    getfattr -h -R -d -m - . 2>/dev/null
  ) | sha256sum | cut -d' ' -f1
}

run_as_user() {
  echo "--- $1 as an ordinary user"
  local functions
  functions=$(declare -f)
  if [ "$(id -u)" -eq 0 ]; then prepare_user; else mkdir -p "$T/user"; fi
  as_user bash -c "set -euo pipefail
    $functions
    T=$T/user FSD=$FSD
    cd \$T
    $1"
}
