#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The workspace's owner appears as the jail's user and back: in listings, in new
# files, in ACLs; what was journaled is the true owner.
. "$(dirname "$0")/lib.sh" || exit 1
. "$TOP/tests/fs/mount.sh"
needs setpriv setfacl getfacl
needs_fuse
[ "$(id -u)" -eq 0 ] || skip 'needs root: only root maps a jail user'

jail() {
  setpriv --reuid 70001 --regid 70002 --clear-groups --inh-caps=-all -- "$@"
}
b=$T/b m=$T/m
mkdir -p "$b/dir"
echo mine >"$b/file"
echo other >"$b/theirs"
setfacl -m u:1234:rw "$b/file"
chown -R 1234:1235 "$b"
chown 33:33 "$b/theirs"
chmod 600 "$b/theirs"
fs_mount "$b" "$m" --way privileged --owner 1234:1235 --jail 70001:70002
same 70001:70002 "$(stat -c %u:%g "$m/file")"
same 33:33 "$(stat -c %u:%g "$m/theirs")"
getfacl -n "$m/file" | grep -qx 'user:70001:rw-' || fail 'an ACL entry'
jail sh -c "echo changed >>'$m/file' && mkdir '$m/dir/new' &&
  chmod 640 '$m/file' && setfacl -m u:70001:r '$m/dir/new'"
not jail cat "$m/theirs"
not jail chown 0 "$m/file"
same 70001:70002 "$(stat -c %u:%g "$m/dir/new")"
fs_unmount

# Without the map the true owners show.
fs_mount "$b" "$m" --way privileged
same 1234:1235 "$(stat -c %u:%g "$m/dir/new")"
same 1234:1235 "$(stat -c %u:%g "$m/file")"
getfacl -n "$m/dir/new" | grep -qx 'user:1234:r--' || fail 'a new ACL entry'
fs_unmount
