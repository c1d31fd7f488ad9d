#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# doctor and run agree: where run refuses doctor exits 5 and names the cause and
# the fix; what only has a consequence is told, and run goes on.
# shellcheck disable=SC2016
. "$(dirname "$0")/lib.sh" || exit 1
needs jq
needs_fuse
[ "$(id -u)" -eq 0 ] || skip 'only root can take parts of the machine away'

check() { # check NAME STATE DETAIL HINT: of the last `doctor --json`
  jq -e --arg name "$1" --arg state "$2" --arg detail "$3" --arg hint "$4" \
    '.checks[] | select(.name == $name) | .state == $state and
     (.detail | contains($detail)) and ((.hint // "") | contains($hint))' \
    "$T/json" >/dev/null || fail "$1 $2: $(jq -c --arg name "$1" '.checks[] | select(.name == $name)' "$T/json")"
}
broken() { # broken CMD...: both refuse, and nothing ran
  exits 5 "$@" doctor --json >"$T/json"
  same false "$(jq .ok "$T/json")"
  if "$@" run --quiet -- touch ran 2>"$T/err"; then fail "it ran: $*"; fi
  grep -q '^stoplog: cannot ' "$T/err" || fail "no reason: $(cat "$T/err")"
  not test -e ran
}
works() {
  "$@" doctor --json >"$T/json" || fail "$(cat "$T/json")"
  same true "$(jq .ok "$T/json")"
  "$@" run --quiet -- true
}

ended() { [ -z "$(stoplog_pids)" ]; }
end_daemons() {
  local pid
  for pid in $(stoplog_pids); do kill -TERM "$pid" 2>/dev/null || true; done
  eventually ended
}

# Every mechanism is there.
workspace
works sl
for name in kernel fuse fusermount3 namespaces apparmor seccomp landlock \
  cgroups jail inotify io_uring reflink space state workspace; do
  jq -e --arg name "$name" '[.checks[].name] | index($name)' "$T/json" \
    >/dev/null || fail "no word of $name"
done

# What was killed left something: told, not in the way.
mkdir "$XDG_STATE_HOME/stoplog/drafts/new-abcdefgh"
works sl
check state warn '1 draft that was being made' 'stoplog gc'
sl gc >/dev/null
sl doctor --json >"$T/json"
check state ok '1 draft in' ''
mkdir "$XDG_STATE_HOME/stoplog/drafts/abcdefgh"
works sl
check state warn 'without a readable draft.json' 'drafts/abcdefgh'
rmdir "$XDG_STATE_HOME/stoplog/drafts/abcdefgh"

# A state that cannot be used.
touch "$T/file"
other() { XDG_STATE_HOME=$T/file sl "$@"; }
broken other
check state fail 'Not a directory; no draft can be used' XDG_STATE_HOME
mkdir -p "$T/theirs/stoplog"
chown "$TEST_UID" "$T/theirs/stoplog"
other() { XDG_STATE_HOME=$T/theirs sl "$@"; }
broken other
check state fail "belongs to user id $TEST_UID" 'sudo -H'
mkdir "$T/full"
mount -t tmpfs -o size=64k,mode=700 stoplog-test "$T/full"
head -c 65536 /dev/zero >"$T/full/zero" || true
other() { XDG_STATE_HOME=$T/full sl "$@"; }
broken other
check space fail 'a draft cannot be written' 'stoplog gc'

# An ordinary user needs a fusermount3 that may mount.
user() { as_user "$STOPLOG" -C "$T/user/w" "$@"; }
prepare_user
cp -r "$T/w" "$T/user/w"
chown -R "$TEST_UID:$TEST_UID" "$T/user/w"
works user
check fusermount3 ok 'ordinary users' ''
mount=$(readlink -f "$(command -v fusermount3)")
cp "$mount" "$T/fusermount3"
chmod 755 "$T/fusermount3"
end_daemons
mount --bind "$T/fusermount3" "$mount"
broken user
check fusermount3 fail 'not setuid root' 'chmod u+s'
umount "$mount"
works user
# Nor does fusermount3 open the device for who may not.
end_daemons
chmod 600 "$T/dev/fuse"
broken user
check fuse fail 'cannot open /dev/fuse: Permission denied' 'chmod 666'
chmod 666 "$T/dev/fuse"

# A file system that does not tell of changes, as NFS does not.
command -v fuse-overlayfs >/dev/null || exit 0
mkdir -p "$T"/lower "$T"/upper "$T"/work "$T"/far
echo text >"$T/lower/a"
fuse-overlayfs -o "lowerdir=$T/lower,upperdir=$T/upper,workdir=$T/work" "$T/far"
cd "$T/far"
sl run -- sh -c 'echo more >>a' 2>"$T/err"
grep -q "'$T/far' is on FUSE: edits of the real files show after a second" \
  "$T/err" || fail "run says: $(cat "$T/err")"
sl run -- true 2>"$T/err"
not grep -q 'is on FUSE' "$T/err" # once is enough
works sl
check workspace warn 'is on FUSE' 'export --patch'
sl export --patch >"$T/patch" 2>/dev/null
grep -qx '+more' "$T/patch"
cd "$T"
end_daemons
umount -l "$T/far"
