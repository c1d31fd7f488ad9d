#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Every option of `run` does what it says, on the command line and from the
# policy's files; and where a command starts, in which draft, is as promised.
. "$(dirname "$0")/lib.sh" || exit 1
needs git jq python3
needs_fuse

killed() { # killed BY LIMIT OPTIONS... -- CMD...: ended by that limit
  local by=$1 limit=$2
  shift 2
  exits 124 sl run --quiet --report "$T/report" "$@" >/dev/null 2>&1
  jq -e --arg by "$by" --argjson limit "$limit" '.killed_by == $by and .limit == $limit
    and .measured >= $limit and .held[$by] != "none"' "$T/report" >/dev/null ||
    fail "$by: $(cat "$T/report")"
}
limits() {
  killed time 300 --time 300ms -- sleep 60
  killed cpu 1000 --cpu 1s -- sh -c 'while :; do :; done'
  killed output 100000 --output 100000 -- sh -c 'while :; do echo yes; done'
  killed memory 67108864 --memory 64M -- python3 -c 'x = b"x" * (1 << 20)
while True: x += x'
  # A limit that refuses leaves the exit code to the command.
  exits 9 sl run --quiet --pids 10 --report "$T/report" -- python3 -c 'import os, sys, time
for i in range(40):
    try:
        if os.fork() == 0: time.sleep(60)
    except BlockingIOError: sys.exit(9)'
  jq -e '.killed_by == null and .exit == 9 and .pids_peak <= 12' "$T/report" >/dev/null ||
    fail "pids: $(cat "$T/report")"
  same 64 "$(sl run --quiet --files 64 -- sh -c 'ulimit -n')" '--files'
}

# Whether the command is at work, or was done before what it wrote was read.
output_limit_after_the_end() {
  local run
  "$STOPLOG" run --quiet --output 10 --report "$T/report" -- \
    sh -c 'until test -e go; do sleep 0.05; done; seq 1000' >"$T/out" &
  run=$!
  eventually something_runs
  kill -STOP "$run"
  touch go
  eventually nothing_runs
  kill -CONT "$run"
  exits 124 wait "$run"
  same 10 "$(wc -c <"$T/out")"
  jq -e '.killed_by == "output" and .limit == 10 and .exit == 124' "$T/report" >/dev/null ||
    fail "output: $(cat "$T/report")"
  # The record says the same, although it was written before.
  sl log --json | jq -e '.entries[] | select(.kind == "run")
    | .killed_by == "output" and .limit == 10 and .exit == 124' >/dev/null ||
    fail "log --json: $(sl log --json)"
  prints 'killed: output' sl log
  sl log --verify >/dev/null
  sl run --quiet -- sh -c 'echo x >made'
  sl commit -a -y --receipt "$T/receipt" >/dev/null
  jq -e '.commands[0].exit == 124' "$T/receipt" >/dev/null || fail "$(cat "$T/receipt")"
  # What fits is no reason to end anything.
  exits 0 sl run --quiet --output 4000 --report "$T/report" -- sh -c 'seq 1000' >"$T/out"
  same 1000 "$(wc -l <"$T/out")"
  exits 0 sl run --quiet --output 4 -- sh -c 'echo abc; sleep 0.2' >"$T/out"
  # Both streams together.
  exits 124 sl run --quiet --output 4 -- sh -c 'echo ab; echo cd >&2; sleep 20' >"$T/out" 2>&1
  same 4 "$(wc -c <"$T/out")"
}
nothing_runs() { [ -z "$(sl ps 2>/dev/null)" ]; }
something_runs() { ! nothing_runs; }

rules() {
  mkdir -p keys conf && echo secret >keys/a && echo token >conf/key.txt && echo law >LICENSE
  # as_told: what these rules make of the tree, whoever gives them.
  as_told() {
    same 'absent masked held refused' "$(sl run --quiet "$@" -- sh -c '
      test -e keys/a && echo there || echo absent
      grep -q "masked by stoplog" conf/key.txt && ! grep -q token conf/key.txt && echo masked
      echo more >>README.md && echo held
      { echo more >>LICENSE; } 2>/dev/null || echo refused' | xargs)" "$*"
  }
  as_told --hide 'keys/**' --mask 'key.*' --ro LICENSE
  mkdir -p "$XDG_CONFIG_HOME/stoplog"
  printf '[files]\nhide = ["keys/**"]\nmask = ["key.*"]\nread_only = ["LICENSE"]\n' \
    >"$XDG_CONFIG_HOME/stoplog/config.toml"
  as_told
  mv "$XDG_CONFIG_HOME/stoplog/config.toml" .stoplog.toml
  as_told
  # Read from the real tree: what an agent writes there changes nothing.
  sl run --quiet -- sh -c 'echo >.stoplog.toml'
  as_told
  rm .stoplog.toml
  same 'law' "$(cat LICENSE)"

  same 'val <> set' "$(A=val B=kept sl run --quiet --env A --env C=set -- sh -c 'echo "$A <$B> $C"')" '--env'
  printf '[env]\npass = ["B"]\n' >"$XDG_CONFIG_HOME/stoplog/config.toml"
  same '<> kept' "$(A=val B=kept sl run --quiet -- sh -c 'echo "<$A> $B"')" 'env.pass'
  printf '[preset.small]\nlimits.files = 77\n' >"$XDG_CONFIG_HOME/stoplog/config.toml"
  same 77 "$(sl run --quiet --preset small -- sh -c 'ulimit -n')" '--preset'
  rm "$XDG_CONFIG_HOME/stoplog/config.toml"

  mkdir "$T/shown-$MODE" && echo x >"$T/shown-$MODE/file"
  not sl run --quiet -- test -e "$T/shown-$MODE"
  same x "$(sl run --quiet --bind-ro "$T/shown-$MODE" -- cat "$T/shown-$MODE/file")" '--bind-ro'
  not sl run --quiet --bind-ro "$T/shown-$MODE" -- touch "$T/shown-$MODE/file" 2>/dev/null
  same x "$(sl run --quiet --bind-ro "$PWD/../shown-$MODE/" -- cat "$T/shown-$MODE/file")" \
    '--bind-ro with a way back'
  same x "$(sl run --quiet --bind-ro "../shown-$MODE" -- cat "$T/shown-$MODE/file")" \
    '--bind-ro from here'
  # What cannot be a pattern is no work for a daemon.
  for option in --hide --mask --ro; do
    exits 2 sl -d never run "$option" 'a[' true 2>"$T/err"
    grep -q "bad value 'a\[' of $option" "$T/err" || fail "$(cat "$T/err")"
  done
  not grep -q never <<<"$(sl drafts)"

  local commands
  commands=$(sl log --json | jq '[.entries[] | select(.kind == "run")] | length')
  sl run --dry-run --time 5m -- touch ran >"$T/out" 2>/dev/null
  grep -q . "$T/out" || fail '--dry-run says nothing'
  same "$commands" "$(sl log --json | jq '[.entries[] | select(.kind == "run")] | length')" '--dry-run'

  # What a command leaves in the background ends with it.
  sl run --quiet -- sh -c 'setsid sleep 987 </dev/null >/dev/null 2>&1 & echo started' >/dev/null
  eventually no_sleeper
}
no_sleeper() { ! pgrep -xf 'sleep 987' >/dev/null; }

# Where a command starts, and in which draft.
places() {
  mkdir -p src/deep
  same "$PWD/src" "$(sl -C src run --quiet -- pwd)" 'in the current directory'
  same "$PWD" "$(cd / && sl --workspace "$W" run --quiet -- pwd)" 'elsewhere: at the top'
  same "$PWD/src/deep" "$(cd src/deep && sl run --quiet -- pwd)" 'the work tree around it'
  (cd src/deep && sl run --quiet -- sh -c 'echo x >here')
  same 'src/deep/here' "$(sl status --json | jq -r '.changes[].path')"
  # PATHs are relative to where one stands, or to the top.
  (cd src && sl approve deep >/dev/null 2>&1)
  same approved "$(sl status --json | jq -r '.changes[].decision')" 'a directory means all beneath'
  (cd / && sl --workspace "$W" reject src/deep/here >/dev/null 2>&1)
  same rejected "$(sl status --json | jq -r '.changes[].decision')" 'relative to the top'

  # -d NAME, else $STOPLOG_DRAFT, else the current one.
  local first
  first=$(sl drafts --json | jq -r '.drafts[0].name')
  sl -d second run --quiet -- sh -c 'echo 2 >two'
  STOPLOG_DRAFT=third sl run --quiet -- sh -c 'echo 3 >three'
  held() { jq -r '[.changes[].path] | join(" ")'; }
  same two "$(STOPLOG_DRAFT=third sl -d second status --json | held)" '-d before the variable'
  same three "$(STOPLOG_DRAFT=third sl status --json | held)" 'the variable'
  same 'src/deep/here' "$(STOPLOG_DRAFT=$first sl status --json | held)" 'the variable names the first'
  same three "$(sl status --json | held)" 'the newest is current'
  sl -d second fork branch >/dev/null 2>&1
  same three "$(sl status --json | held)" 'a fork changes nothing'
  sl switch second >/dev/null 2>&1
  same two "$(sl status --json | held)" 'switch does'
  STOPLOG_DRAFT=none exits 2 sl status 2>"$T/err"
  grep -q "cannot find draft 'none'" "$T/err" || fail "$(cat "$T/err")"
  sl run --quiet --new -- true
  same '' "$(sl status --json | held)" 'run --new'
  # The default command is the user's shell.
  same 'from the shell' "$(echo 'echo from the shell' | SHELL=/bin/sh sl run --quiet)" 'SHELL'
}

# Ctrl-C: 130, and the draft goes on.
interrupted() {
  python3 - "$STOPLOG" <<'PY'
import os, pty, sys
pid, terminal = pty.fork()
if pid == 0:
    os.execv(sys.argv[1], [sys.argv[1], "run", "--quiet", "--", "sh", "-c", "echo x >made; echo ready; sleep 60"])
said = b""
while b"ready" not in said: said += os.read(terminal, 4096)
os.write(terminal, b"\x03")
try:
    while os.read(terminal, 4096): pass
except OSError: pass
sys.exit(0 if os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 130 else 1)
PY
  same made "$(sl status --json | jq -r '.changes[].path')"
}

both_modes limits
both_modes output_limit_after_the_end
both_modes rules
both_modes places
both_modes interrupted
