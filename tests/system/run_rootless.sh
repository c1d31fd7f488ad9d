#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Root that is not the host's. Of a user namespace, as in a rootless container:
# with the usual range of users everything works; with one user alone nothing
# runs, and it is said why, as it is without the right to mount.
. "$(dirname "$0")/lib.sh" || exit 1
needs git jq nsenter
needs_fuse
[ "$(id -u)" -eq 0 ] || skip 'needs root: maps a range of users'
prepare_user # a /dev/fuse for others
first=300000

# namespace USERS: its init's pid in $inside.
namespace() {
  unshare --user sleep 300 &
  inside=$!
  eventually apart
  echo "0 $first $1" >"/proc/$inside/uid_map"
  echo "0 $first $1" >"/proc/$inside/gid_map"
}
apart() { [ "$(readlink "/proc/$inside/ns/user")" != "$(readlink /proc/self/ns/user)" ]; }
# As its root, over a workspace of its own.
within() {
  nsenter -t "$inside" -U -S 0 -G 0 unshare --mount env HOME="$place/home" \
    XDG_STATE_HOME="$place/state" XDG_CONFIG_HOME="$place/config" \
    XDG_RUNTIME_DIR="$place/run" "$STOPLOG" --workspace "$place/w" "$@"
}
prepare_place() {
  place=$T/$1
  mkdir -p "$place"/{w,home,run}
  echo hello >"$place/w/file"
  chmod 700 "$place/run"
  chown -R "$first:$first" "$place"
  chmod 711 "$T"
}

namespace 65536
prepare_place range
within run --quiet -- sh -c 'echo more >>file; echo new >made; test "$(id -u)" = 1000'
same hello "$(cat "$place/w/file")" 'the real tree'
within commit -a -y >/dev/null
same 'hello more new' "$(cat "$place/w/file" "$place/w/made" | xargs)"
same "$first" "$(stat -c %u "$place/w/made")" 'the owner'
within doctor --json | jq -e '.ok' >/dev/null || fail "doctor: $(within doctor)"
within rm -y "$(within drafts --json | jq -r '.drafts[0].name')" 2>/dev/null
kill "$inside"

namespace 1
prepare_place single
exits 5 within run -- touch ran 2>"$T/err"
grep -q "cannot map the jail's user" "$T/err" && grep -q '^hint: .*too few users' "$T/err" ||
  fail "$(cat "$T/err")"
[ ! -e "$place/w/ran" ] || fail 'it ran'
exits 5 within doctor >"$T/out"
grep -q 'too few users' "$T/out" || fail "doctor: $(cat "$T/out")"
kill "$inside"

# As a container that was given nothing: `doctor` knows what `run` will say.
workspace
incapable() { setpriv --bounding-set -sys_admin --inh-caps -sys_admin "$STOPLOG" "$@"; }
exits 5 incapable run -- touch ran 2>"$T/err"
grep -q 'cannot make a mount namespace' "$T/err" && grep -q '^hint: .*doctor' "$T/err" ||
  fail "$(cat "$T/err")"
[ ! -e ran ] || fail 'it ran'
exits 5 incapable doctor >"$T/out"
grep -q '^fail fusermount3 .*root cannot mount here' "$T/out" && grep -q 'CAP_SYS_ADMIN' "$T/out" ||
  fail "doctor: $(cat "$T/out")"
exits 5 incapable doctor --json >"$T/out"
jq -e '.ok == false' "$T/out" >/dev/null
