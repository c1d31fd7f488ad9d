#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Workspaces on file systems that cannot promise what a commit needs, real ones:
# files of another machine (sshfs) and an NTFS that does not tell names apart by
# case. Kernels with NFS, SMB, 9P or casefold are rare where tests run: those are
# played (tests/unit/gate/fs_kind_test.cc).
. "$(dirname "$0")/lib.sh" || exit 1
needs jq git
needs_fuse
[ "$(id -u)" -eq 0 ] || skip 'only root can mount'
[ -n "${STOPLOG_TEST_INSIDE:-}" ] || skip 'no mount namespace'

tried=0
unmounted() { umount "$1" 2>/dev/null; }
leave() {
  local pid
  cd "$T"
  for pid in $(stoplog_pids); do kill "$pid" 2>/dev/null || true; done
  eventually unmounted "$1"
}
# Refused by the name of the file system, and nothing of the commit is there.
refused_as() {
  local before
  before=$(ls -A . && cat README.md)
  exits 5 sl commit 2>"$T/err"
  grep -q "the file system here ($1) cannot exchange two names" "$T/err" ||
    fail "not by its name: $(cat "$T/err")"
  same "$before" "$(ls -A . && cat README.md)"
  same '' "$(find . "$XDG_STATE_HOME" -name '.stoplog-*' -o -name intent)"
  sl export --patch "$T/patch" >/dev/null
  git apply --check "$T/patch" || fail 'the patch is no way out'
}

another_machine() {
  local server
  server=$(command -v /usr/lib/openssh/sftp-server /usr/libexec/sftp-server | head -n 1) || return 0
  command -v sshfs >/dev/null || return 0
  mkdir "$T/there" "$T/here"
  mkfifo "$T/answers"
  "$server" <"$T/answers" | sshfs -f -o passive,default_permissions \
    "localhost:$T/there" "$T/here" >"$T/answers" &
  eventually mountpoint -q "$T/here"
  workspace "$T/here/w"
  sl run --quiet -- sh -c 'echo new >new; echo more >>README.md; chmod 755 src/main.c' 2>"$T/err"
  same 'README.md new src/main.c' "$(sl status --json | jq -r '.changes[].path' | xargs)"
  sl approve --all >/dev/null
  refused_as 'FUSE, sshfs'
  leave "$T/here"
  tried=1
}
another_machine

one_case() {
  command -v lowntfs-3g mkfs.ntfs >/dev/null || return 0
  truncate -s 32M "$T/ntfs"
  mkfs.ntfs -q -F -f "$T/ntfs" >/dev/null 2>&1 || return 0
  mkdir "$T/n"
  lowntfs-3g -o ignore_case,permissions "$T/ntfs" "$T/n" >/dev/null 2>&1 || return 0
  workspace "$T/n/w"
  sl run --quiet -- sh -c 'echo 1 >Makefile; echo 2 >makefile; echo more >>README.md' 2>/dev/null
  sl status >"$T/out"
  grep -q 'differs from its neighbour in case only' "$T/out" || fail "$(cat "$T/out")"
  sl approve --all >/dev/null
  refused_as FUSE
  leave "$T/n"
  tried=1
}
one_case
[ "$tried" = 1 ] || skip 'neither sshfs with an sftp-server nor lowntfs-3g is here'
