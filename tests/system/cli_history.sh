#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The timeline: what log and drafts show, a snapshot of a running command, going
# back past a commit, a fork's HOME, and gc with and without a daemon.
. "$(dirname "$0")/lib.sh" || exit 1
needs jq python3
needs_fuse

held_bytes() { # on disk, of the current draft
  local id
  id=$(sl drafts --json | jq -r '.drafts[] | select(.current).id')
  du -sB1 "$XDG_STATE_HOME/stoplog/drafts/$id/segments" | cut -f1
}
is_gone() { ! kill -0 "$1" 2>/dev/null; }
stop_daemons() {
  local pid
  for pid in $(sl drafts --json | jq '.drafts[].daemon // empty'); do
    kill "$pid"
    eventually is_gone "$pid"
  done
}

timeline() {
  sl run --quiet -- sh -c 'echo a >a; echo b >b; echo t >tmp; rm tmp; echo x >~/.kept'
  sl run --quiet -- sh -c 'echo more >>a; rm README.md; mv src elsewhere'
  exits 3 sl run --quiet -- sh -c 'exit 3'
  same '2 3 0' "$(sl log --json | jq -r '.entries[] | select(.kind == "run").changed' | xargs)"
  same '0 0 3' "$(sl log --json | jq -r '.entries[] | select(.kind == "run").exit' | xargs)"
  sl log --no-pager >"$T/log-$MODE"
  grep -q '@2 .*exit 0, .*3 files changed' "$T/log-$MODE" || fail "$(cat "$T/log-$MODE")"
  # Which command made a change.
  same 1 "$(sl status --json | jq '.changes[] | select(.path == "b").command')"
  same 2 "$(sl status --json | jq '.changes[] | select(.path == "a").command')"

  # A fork has its own HOME, and what both hold is named.
  sl fork other >/dev/null
  sl -d other run --quiet -- sh -c 'test "$(cat ~/.kept)" = x && echo y >~/.kept && echo o >only'
  sl run --quiet -- sh -c 'test "$(cat ~/.kept)" = x'
  same 'README.md a b elsewhere' "$(sl drafts --json |
    jq -r '.drafts[] | select(.name == "other").overlaps[0].paths[]' | sort | xargs)"
  prints "4 paths also in 'other': " sl drafts
  sl -d other discard -y >/dev/null
  same 0 "$(sl drafts --json | jq '[.drafts[].overlaps | length] | add')"

  # Back past a commit: what it replaced is held again.
  sl commit -a -y --danger >/dev/null
  sl log --verify >/dev/null
  same 3 "$(sl log --json | jq '[.entries[] | select(.kind == "run" and .exit != null)] | length - 1')"
  name=$(sl drafts --json | jq -r '.drafts[] | select(.state == "committed").name')
  test ! -e README.md
  sl -d "$name" rollback @1
  same "$(printf 'A\tREADME.md\nD\ta\nD\tb\nR100\telsewhere/main.c\tsrc/main.c')" \
    "$(sl -d "$name" diff --name-status)"
  same hello "$(sl -d "$name" cat README.md)"
  sl -d "$name" commit -a -y --danger >/dev/null
  same hello "$(cat README.md)"
  test -e src/main.c && test ! -e a && test ! -e elsewhere
}

# A program that stores through a mapping and waits; a snapshot sees the stores.
mapped() {
  sl run --quiet -- python3 -c '
import mmap, os, time
with open("m", "w+b") as f:
    f.truncate(3 * 4096)
    m = mmap.mmap(f.fileno(), 0)
    for n in range(1, 4):
        m[(n - 1) * 4096:(n - 1) * 4096 + 5] = b"store"
    open("ready", "w").close()
    while not os.path.exists("go"):
        time.sleep(0.01)
    m[0:5] = b"later"
' &
  is_ready() { sl cat ready 2>/dev/null; }
  PATIENCE=60
  eventually is_ready
  sl snapshot -m live >/dev/null
  same "$(printf 'store%.0s' 1 2 3)" "$(sl cat live:m | tr -d '\0')"
  # It goes on where it was.
  same 1 "$(sl ps --json | jq '.commands | length')"
  sl stop
  wait || true
}

collected() {
  # 4 MB rewritten in each of six commands; then 9 MB may be kept.
  for n in 1 2 3 4 5 6; do
    sl run --quiet -- sh -c "head -c 4000000 /dev/urandom >big; echo $n >n"
    [ "$n" != 2 ] || sl snapshot -m second >/dev/null
  done
  second=$(sl cat second:big | sha256sum)
  now=$(sl cat big | sha256sum)
  sl fork twin >/dev/null
  twin=$(sl -d twin cat big | sha256sum)
  mkdir -p "$XDG_CONFIG_HOME/stoplog"
  printf '[history]\nmax_size = "9M"\n' >"$XDG_CONFIG_HOME/stoplog/config.toml"
  before=$(held_bytes)
  same '0 false' "$(sl gc --dry-run --json | jq -r '"\(.objects) \(.marks == 0)"')"
  same "$before" "$(held_bytes)"
  sl gc --json >"$T/gc-$MODE" # online
  jq -e '.marks > 0 and .history_bytes >= 0' "$T/gc-$MODE" >/dev/null
  same "$second" "$(sl cat second:big | sha256sum)" 'a named mark'
  same "$now" "$(sl cat big | sha256sum)" now
  same "$twin" "$(sl -d twin cat big | sha256sum)" 'the fork'
  same 6 "$(sl cat n)"
  sl cat @6:big >/dev/null
  exits 2 sl rollback @1 2>/dev/null
  sl log --verify >/dev/null
  # And without a daemon; with the fork gone, its share goes as well.
  sl rm -y twin
  stop_daemons
  sl gc >"$T/gc-$MODE"
  grep -q 'let go' "$T/gc-$MODE"
  [ "$(held_bytes)" -lt 13000000 ] || fail "$(held_bytes) bytes are held"
  same "$second" "$(sl cat second:big | sha256sum)" 'a named mark'
  same "$now" "$(sl cat big | sha256sum)" now
  sl rollback second
  same "$second" "$(sl cat big | sha256sum)"
  # What an undo needs stays.
  sl commit -a -y >/dev/null
  sl gc >/dev/null
  sl undo >/dev/null
  test ! -e big
  rm "$XDG_CONFIG_HOME/stoplog/config.toml"
  # A workspace's file cannot shorten the history.
  printf '[history]\nmax_size = "1K"\n' >.stoplog.toml
  same 21474836480 "$(sl policy show --json 2>/dev/null | jq .policy.history_size)"
}

# A fork shares its parent's journal, and outlives it; so does a fork of that.
family() {
  sl run --quiet -- sh -c 'echo one >a'
  sl run --quiet -- sh -c 'echo two >a; echo two >b'
  sl rollback @2
  same "$(printf 'A\ta')" "$(sl diff --name-status)"
  sl run --quiet -- sh -c 'echo three >c'
  parent=$(sl drafts --json | jq -r '.drafts[] | select(.current).name')
  sl fork child >/dev/null
  sl run --quiet -- sh -c 'echo parent >c; echo only >parent' # in the shared file
  sl -d child run --quiet -- sh -c 'echo child >d'
  sl -d child fork grandchild @2. >/dev/null
  for pid in $(sl drafts --json | jq '.drafts[].daemon // empty'); do
    kill -9 "$pid"
    eventually is_gone "$pid"
  done
  sl rm -y "$parent"
  sl gc >/dev/null
  sl -d child log --verify >/dev/null
  same "$(printf 'A\ta\nA\tc\nA\td')" "$(sl -d child diff --name-status)"
  same 'one three' "$(echo $(sl -d child cat a) $(sl -d child cat c))"
  same 'two two' "$(echo $(sl -d grandchild cat a) $(sl -d grandchild cat b))"
  # All marks of the family, with a daemon and without.
  for how in without with; do
    [ $how = without ] || sl -d child run --quiet -- true
    sl -d child rollback @2.
    same "$(printf 'A\ta\nA\tb')" "$(sl -d child diff --name-status)" "$how"
    sl -d child rollback @1.
    same "$(printf 'A\ta')" "$(sl -d child diff --name-status)" "$how"
    sl -d child rollback @1
    same '' "$(sl -d child diff --name-status)" "$how"
    sl -d child rollback @4.
    same child "$(sl -d child cat d)" "$how"
  done
  # And in a bundle.
  sl -d child export "$T/$MODE.bundle" >/dev/null
  digest=$(sl -d child status --json | jq -r .digest)
  sl import "$T/$MODE.bundle" brought >/dev/null
  same "$digest" "$(sl -d brought status --json | jq -r .digest)"
  sl -d brought rollback @2.
  same 'two two' "$(echo $(sl -d brought cat a) $(sl -d brought cat b))"
  sl -d brought gc >/dev/null
  sl -d brought rollback @1.
  same one "$(sl -d brought cat a)"
}

both_modes timeline
both_modes mapped
both_modes collected
both_modes family
