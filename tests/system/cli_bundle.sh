#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A draft as one file: export, and import over the same tree with another state
# directory; trees that differ and files that were tampered with are refused.
. "$(dirname "$0")/lib.sh" || exit 1
needs jq python3 zstd
needs_fuse

# Run on "another machine": other state, other HOME, the tree in $1.
there() {
  local at=$1
  shift
  (
    enter_home "$T/there-$PART"
    cd "$at"
    "$STOPLOG" "$@"
  )
}
refused() { # CODE TEXT COMMAND...: nothing is made
  local code=$1 text=$2 before
  shift 2
  before=$(find "$T/there-$PART/state" 2>/dev/null | grep -c '/drafts/.' || true)
  exits "$code" "$@" 2>"$T/err-$MODE"
  grep -qF "$text" "$T/err-$MODE" || fail "no «$text» in: $(cat "$T/err-$MODE")"
  same "$before" \
    "$(find "$T/there-$PART/state" 2>/dev/null | grep -c '/drafts/.' || true)" \
    'left behind'
}

bundle() {
  PART=a-$MODE
  ln -s README.md lead
  mkdir -p moved/sub doomed
  printf 'one\ntwo\n' >moved/sub/a
  printf 'bye\n' >doomed/x
  ln doomed/x doomed/y
  head -c 3000000 /dev/urandom >big
  git add -A && git commit -qm more
  # The base as it is before any commit of the draft.
  sl run --quiet -- sh -c 'echo early >early; echo >>README.md; echo cfg >~/.rc'
  sl approve early >/dev/null && sl commit >/dev/null
  sl run --quiet -- sh -c 'echo more >>README.md; mv moved elsewhere
    echo three >>elsewhere/sub/a; rm doomed/x; chmod 755 src/main.c
    ln -s nowhere link; ln elsewhere/sub/a hard; mkdir empty
    printf x | dd of=big bs=1 seek=1500000 conv=notrunc status=none
    truncate -s 50M sparse; printf "end" >>sparse
    printf "odd" >"$(printf "odd\nname\377")"; echo tab >"a	b"'
  sl snapshot -m green >/dev/null
  sl run --quiet -- sh -c 'rm -r elsewhere; echo early2 >early'
  sl rollback green
  sl approve README.md >/dev/null

  cp -a "$PWD" "$T/copy-$MODE"
  digest=$(sl status --json | jq -r .digest)
  sl export "$T/$MODE.bundle" >/dev/null
  same 600 "$(stat -c %a "$T/$MODE.bundle")"
  zstd -tq "$T/$MODE.bundle"
  same "$digest" "$(sl export "$T/again-$MODE.bundle" --json | jq -r .digest)"
  sl diff --no-pager >"$T/here-$MODE.diff"

  there "$T/copy-$MODE" import "$T/$MODE.bundle" >/dev/null
  same "$digest" "$(there "$T/copy-$MODE" status --json | jq -r .digest)" digest
  there "$T/copy-$MODE" diff --no-pager >"$T/there-$PART.diff"
  cmp "$T/here-$MODE.diff" "$T/there-$PART.diff"
  same '' "$(there "$T/copy-$MODE" status --json |
    jq -r '.changes[] | select(.drift != null or .decision != "none") | .path')"
  # The timeline came along, and goes on.
  there "$T/copy-$MODE" log --verify >/dev/null
  same 'run run run import' "$(there "$T/copy-$MODE" log --json |
    jq -r '.entries[] | select(.kind == "run" or .kind == "import").kind' | xargs)"
  for range in '@1 @1.' '@2 @2.' 'green @3.' '@1 @3.'; do
    set -- $range
    sl diff --no-pager --from "$1" --to "$2" >"$T/a-$MODE"
    there "$T/copy-$MODE" diff --no-pager --from "$1" --to "$2" >"$T/b-$MODE"
    cmp "$T/a-$MODE" "$T/b-$MODE"
  done
  there "$T/copy-$MODE" run --quiet -- sh -c 'grep -q three elsewhere/sub/a &&
    test "$(stat -c %s sparse)" = 52428803 && test "$(cat ~/.rc)" = cfg &&
    test "$(cat hard)" = "$(cat elsewhere/sub/a)" && test ! -e doomed/x &&
    test "$(stat -c %h hard)" = 2'
  # Past the commit: what it replaced came along.
  there "$T/copy-$MODE" rollback @1
  same hello "$(there "$T/copy-$MODE" cat README.md)"
  exits 2 there "$T/copy-$MODE" cat early
  there "$T/copy-$MODE" rollback green
  there "$T/copy-$MODE" commit -a -y --danger >/dev/null
  same odd "$(cat "$T/copy-$MODE/$(printf 'odd\nname\377')")"
  same 755 "$(stat -c %a "$T/copy-$MODE/src/main.c")"
}

same_tree_only() {
  PART=b-$MODE
  printf 'deep\n' >src/deep.h
  git add -A && git commit -qm more
  sl run --quiet -- sh -c 'echo >>README.md; rm src/main.c; echo n >new
    chmod 600 src/deep.h'
  sl export "$T/$MODE.b" >/dev/null
  cp -a "$PWD" "$T/other-$MODE"
  cd "$T/other-$MODE"
  echo changed >README.md
  echo changed >>src/main.c
  echo here >new
  chmod 640 src/deep.h
  for line in 'README.md has other content here' \
    'src/main.c has other content here' 'new exists here' \
    'src/deep.h has mode 0640 here, not 0644' '4 paths differ'; do
    refused 3 "$line" there "$PWD" import "$T/$MODE.b"
  done
  rm README.md && ln -s x README.md
  refused 3 'README.md is another kind of file here' \
    there "$PWD" import "$T/$MODE.b"
  rm README.md
  refused 3 'README.md is missing here' there "$PWD" import "$T/$MODE.b"
  git checkout -q . && rm new && chmod 644 src/deep.h
  # What the draft never touched may differ; times may, too.
  echo other >>.gitignore
  touch -d 2001-01-01 README.md src/main.c
  there "$PWD" import "$T/$MODE.b" mine >/dev/null
  same '' "$(there "$PWD" status --json | jq -r '.changes[].drift // empty')"
  refused 2 'there is one of that name' there "$PWD" import "$T/$MODE.b" mine
  there "$PWD" import "$T/$MODE.b" >/dev/null
  same 2 "$(there "$PWD" drafts --json | jq '.drafts | length')"
}

hostile() {
  PART=c-$MODE
  sl run --quiet -- sh -c 'echo >>README.md; head -c 300000 /dev/urandom >r'
  sl export "$T/$MODE.h" >/dev/null
  mkdir -p "$T/there-$PART"
  refused 2 'no stoplog bundle' there "$PWD" import README.md
  exits 2 there "$PWD" import src 2>/dev/null
  mkfifo "$T/fifo-$MODE"
  exits 2 there "$PWD" import "$T/fifo-$MODE" 2>/dev/null
  exits 6 there "$PWD" import "$T/nosuch" 2>/dev/null
  # Cut anywhere, flipped anywhere: nothing is believed.
  python3 - "$T/$MODE.h" "$T/bad-$MODE" <<'PY'
import sys, os, random
data = open(sys.argv[1], 'rb').read()
os.mkdir(sys.argv[2])
r = random.Random(7)
cuts = [30, 100, len(data) // 2, len(data) - 1, len(data) - 60]
for i, n in enumerate(cuts):
    open(f'{sys.argv[2]}/cut{i}', 'wb').write(data[:n])
for i in range(12):
    b = bytearray(data)
    b[r.randrange(24, len(b))] ^= 1 << r.randrange(8)
    open(f'{sys.argv[2]}/bit{i}', 'wb').write(bytes(b))
PY
  for f in "$T/bad-$MODE"/*; do
    refused 6 'the bundle is damaged' there "$PWD" import "$f"
  done
  # A small file that would grow beyond what a draft may hold.
  mkdir -p "$T/there-$PART/config/stoplog"
  printf '[limits]\ndisk = "200K"\n' >"$T/there-$PART/config/stoplog/config.toml"
  refused 4 'more than a draft may' there "$PWD" import "$T/$MODE.h"
  rm "$T/there-$PART/config/stoplog/config.toml"
  there "$PWD" import "$T/$MODE.h" >/dev/null
}

# Ctrl-C in the middle: no half file, no half draft. The signal is sent once
# GLOB has a file of some size; who was too fast is tried again.
interrupt() { # SIGNAL GLOB COMMAND...
  python3 - "$@" <<'PY'
import glob, os, signal, subprocess, sys, time
number = getattr(signal, 'SIG' + sys.argv[1])
def begun():
    for name in glob.glob(sys.argv[2]):
        try:
            if os.path.getsize(name) > 100000:
                return True
        except OSError:
            pass
    return False
for attempt in range(50):
    p = subprocess.Popen(sys.argv[3:], stdout=subprocess.DEVNULL,
                         stderr=subprocess.DEVNULL)
    while p.poll() is None and not begun():
        time.sleep(0.001)
    p.send_signal(number)
    if p.wait() == -number:
        sys.exit(0)
    if p.returncode != 0:
        sys.exit(f'exit {p.returncode}')
    if sys.argv[4] == 'export':
        os.unlink(sys.argv[5])
    else:
        subprocess.run([sys.argv[3], 'rm', '-y', sys.argv[6]], check=True)
sys.exit('never interrupted')
PY
}
interrupted() {
  PART=d-$MODE
  sl run --quiet -- sh -c 'i=0; while [ $i -lt 20 ]; do
    head -c 4000000 /dev/urandom >f$i; i=$((i + 1)); done'
  sl export "$T/$MODE.i" >/dev/null
  mkdir "$T/to-$MODE"
  for signal in INT TERM; do
    interrupt "$signal" "$T/to-$MODE/.stoplog-*" "$STOPLOG" export "$T/to-$MODE/x"
    same '' "$(ls -A "$T/to-$MODE")"
  done
  mkdir -p "$T/there-$PART"
  (
    enter_home "$T/there-$PART"
    interrupt INT "$XDG_STATE_HOME/stoplog/drafts/new-*/segments/*" \
      "$STOPLOG" import "$T/$MODE.i" x
  )
  same '' "$(ls -A "$T/there-$PART/state/stoplog/drafts")"
  # Killed outright: what is left is no draft, and gc takes it.
  mkdir "$T/there-$PART/state/stoplog/drafts/new-abcd1234"
  same '' "$(there "$PWD" drafts --json | jq -r '.drafts[]')"
  there "$PWD" gc >/dev/null
  same '' "$(ls -A "$T/there-$PART/state/stoplog/drafts")"
}

both_modes bundle
both_modes same_tree_only
both_modes hostile
both_modes interrupted
