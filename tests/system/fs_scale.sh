#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What must not grow with the size of the tree: the work of a mount, of renaming
# a directory, the descriptors; and memory by no more than 300 bytes a file.
# FILES=500000 is the long form.
# ctest: timeout 600
. "$(dirname "$0")/lib.sh" || exit 1
. "$TOP/tests/fs/mount.sh"
needs python3 strace find
needs_fuse
FILES=${FILES:-200000}

make_tree() { # DIRECTORY FILES
  python3 - "$1" "$2" <<'END'
import os, sys
top, count = sys.argv[1], int(sys.argv[2])
for n in range(count):
    if n % 500 == 0:
        d = f"{top}/all/d{n // 50000}/e{n // 500}"
        os.makedirs(d)
    os.close(os.open(f"{d}/f{n}", os.O_CREAT | os.O_WRONLY))
END
}
stat_of() { # KEY
  local words
  words=$(fs_ask stats)
  words=${words#*"$1"=}
  echo "${words%% *}"
}
requests() { fs_ask total; }

scale() {
  local b=$T/b m=$T/m before after nodes
  mkdir "$b"
  make_tree "$b" "$FILES"
  fs_mount "$b" "$m" --way "$1"
  before=$(stat_of memory)
  same "$FILES" "$(find "$m" -type f -printf '%s\n' | wc -l)"
  nodes=$(stat_of nodes) after=$(stat_of memory)
  echo "$nodes nodes, $(((after - before) / nodes)) bytes each"
  [ "$nodes" -ge $((FILES / 2)) ] || fail 'the kernel forgot most of them'
  [ $(((after - before) / nodes)) -le 300 ] || fail 'too much memory'
  local fds
  fds=$(ls "/proc/$FS_PID/fd" | wc -l)
  echo "$fds descriptors"
  [ "$fds" -le 1000 ] || fail 'too many descriptors'

  # One rename: three requests, one record or two, and nothing beneath moves.
  local journal asked held
  journal=$(stat_of journal) held=$(stat_of touched) asked=$(requests)
  mv -T "$m/all" "$m/moved"
  asked=$(($(requests) - asked))
  journal=$(($(stat_of journal) - journal)) held=$(($(stat_of touched) - held))
  echo "rename: $asked requests, $journal bytes of journal, $held nodes held"
  [ "$asked" -le 3 ] || fail 'too many requests'
  [ "$journal" -le 1000 ] || fail 'too many records'
  [ "$held" -le 2 ] || fail 'too many nodes'
  test -e "$m/moved/d0/e0/f0"
  test ! -e "$m/all"
  fs_unmount
  fs_mount "$b" "$m" --way "$1"
  test -e "$m/moved/d0/e0/f499"
  same "$FILES" "$(find "$m/moved" -type f | wc -l)"
  fs_unmount
}
if [ "$(id -u)" -eq 0 ]; then
  # Names alone are needed: a disk would only make it slow.
  mkdir "$T/tree"
  mount -t tmpfs -o mode=755 none "$T/tree"
  (T=$T/tree && scale privileged)
else
  scale fusermount
fi

# A mount asks the same of the system, however large the tree is.
calls() {
  mkdir -p "$T/calls.m" "$T/calls.draft"
  strace -f -qq -o "$T/trace" \
    -e trace=%file,getdents64,mmap,brk,fstat,ioctl,inotify_add_watch,write \
    "$FSD" --base "$1" --draft "$T/calls.draft" --mount "$T/calls.m" \
    --way "$way" --no-background </dev/null >/dev/null
  rm -r "$T/calls.draft"
  wc -l <"$T/trace"
}
way=fusermount
[ "$(id -u)" -ne 0 ] || way=privileged
mkdir "$T/small"
make_tree "$T/small" 10
large=$T/b
[ "$(id -u)" -ne 0 ] || large=$T/tree/b
few=$(calls "$T/small") many=$(calls "$large")
echo "a mount over 10 files: $few calls, over $FILES: $many"
# A thread more or less that got to run: some calls.
[ "$many" -le $((few + 30)) ] || fail 'a mount grows with the tree'
