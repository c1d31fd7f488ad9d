#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Stores through a shared mapping that find no room are lost where no program
# can be told of it: the command is ended, and the file named in the summary,
# the report, the log and the ledger. With a quota and with a full disk, in the
# workspace and in HOME.
# ctest: timeout 400
. "$(dirname "$0")/lib.sh" || exit 1
needs python3 jq mkfs.ext4
needs_fuse

# Maps a sparse file, fills it and goes on as if all was well. HOW: "stays"
# waits to be ended, "leaves" exits with 0, "unnamed" has removed the file.
cat >"$T/mapped.py" <<'EOF'
import mmap, os, sys, time
path, how = sys.argv[1], sys.argv[2]
size = int(sys.argv[3])
f = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
os.ftruncate(f, size)
m = mmap.mmap(f, size)
if how == 'unnamed':
    os.unlink(path)
for at in range(0, size, 4096):
    m[at:at + 4096] = os.urandom(8) * 512
if how == 'leaves':
    m.close()
    os._exit(0)
try:
    m.flush()
except OSError:
    pass
print('flushed', flush=True)
time.sleep(300)
EOF
chmod 644 "$T/mapped.py"
export MAPPED=$T/mapped.py

ended() { # PATH: how the last command's loss is told
  jq -e --arg path "$1" '.killed_by == "supervisor" and .exit == 137 and
    .signal == 9 and .limit == null and .lost == $path' "$T/report" >/dev/null ||
    fail "report: $(cat "$T/report")"
  grep -qF "no room was left for what it had stored through a mapping of '$1'" \
    "$T/said" || fail "summary: $(cat "$T/said")"
  [ -z "${LEDGER_FULL:-}" ] || return 0
  sl log >"$T/log"
  grep -qF "killed: supervisor, lost $1" "$T/log" || fail "log: $(cat "$T/log")"
  sl log --json >"$T/log"
  jq -e --arg path "$1" '[.. | objects | select(.kind? == "run")][-1].lost == $path' \
    "$T/log" >/dev/null || fail "ledger: $(cat "$T/log")"
  prints . sl log --verify
}
store() { # [OPTION...] -- FILE HOW MIB
  local options=()
  while [ "$1" != -- ]; do
    options+=("$1")
    shift
  done
  shift
  cp "$MAPPED" mapped.py
  exits 137 sl run --report "$T/report" "${options[@]}" -- \
    python3 mapped.py "$1" "$2" $(($3 << 20)) 2>"$T/said" >"$T/out"
}

# The reserve beyond the quota is 16 MiB.
quota() {
  mkdir -p sub
  store --disk 1M -- sub/mapped stays 24
  ended "$PWD/sub/mapped"
  sl log --json >"$T/log"
  jq -e '[.. | objects | select(.kind? == "drift" and .path == "sub/mapped")]
    | length == 1' "$T/log" >/dev/null || fail "not named: $(cat "$T/log")"
  # Once more with the same file, by a command that is about to leave by itself.
  store --disk 1M -- sub/mapped leaves 24
  ended "$PWD/sub/mapped"
  store --disk 1M -- unnamed unnamed 24
  ended 'a file without a name'
  # shellcheck disable=SC2016
  home=$(sl run -- sh -c 'echo "$HOME"' 2>/dev/null)
  store --disk 1M -- "$home/mapped" leaves 24
  ended "$home/mapped"
  # Within the reserve nothing is lost, and nobody is ended.
  sl discard -y >/dev/null 2>&1 || true
  cp "$MAPPED" mapped.py
  sl run --disk 1M --report "$T/report" -- \
    python3 mapped.py small leaves $((8 << 20)) 2>/dev/null
  jq -e '.lost == null and .killed_by == null' "$T/report" >/dev/null ||
    fail "$(cat "$T/report")"
}
both_modes quota

# The disk beneath is full instead: the ledger has no room for an entry either.
full() {
  LEDGER_FULL=yes
  # What a first command makes in the state directory is there by then.
  sl run -- touch early 2>/dev/null
  sl status >/dev/null 2>&1
  store -- mapped leaves 48
  ended "$PWD/mapped"
  store -- mapped stays 48
  ended "$PWD/mapped"
  sl status >/dev/null
  sl run -- rm -f mapped 2>"$T/said" || fail "no removal: $(cat "$T/said")"
  prints again sl run -- sh -c 'echo again >after; cat after'
}
[ "$(id -u)" -eq 0 ] || exit 0
small_disk() { # DIRECTORY
  mkdir -p "$1"
  truncate -s 32M "$T/image-$2"
  mkfs.ext4 -q -m 0 -J size=4 "$T/image-$2"
  mount -o loop "$T/image-$2" "$1"
  rmdir "$1/lost+found"
}
prepare_user
small_disk "$T/state" root
small_disk "$T/user/state" user
chown "$TEST_UID:$TEST_UID" "$T/user/state"
both_modes full
