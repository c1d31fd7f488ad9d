#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What a command writes is held; its streams and its exit code are its own.
. "$(dirname "$0")/lib.sh" || exit 1
needs_fuse

holds() {
  echo base > file
  git rev-parse HEAD > "$T/head.$MODE" 2>/dev/null || true
  local before after
  before=$(find . -path ./.git -prune -o -printf '%p %m %T@ %s\n' | sort)
  same "in out" "$(echo in | sl run --quiet -- sh -c 'read x; echo $x out; echo err >&2' 2>/dev/null)"
  same err "$(sl run --quiet -- sh -c 'echo out; echo err >&2' 2>&1 >/dev/null)"
  sl run --quiet -- sh -c 'echo more >> file; mkdir d; echo x > d/new; rm -f README.md'
  after=$(find . -path ./.git -prune -o -printf '%p %m %T@ %s\n' | sort)
  same "$before" "$after" 'the real tree'
  same "$(printf 'base\nmore\nx')" "$(sl run --quiet -- cat file d/new)" 'the next command'
  exits 7 sl run --quiet -- sh -c 'exit 7'
  exits 127 sl run --quiet -- no-such-command 2>/dev/null
  exits 126 sl run --quiet -- ./file 2>/dev/null
  exits 137 sl run --quiet -- sh -c 'kill -9 $$'
  exits 124 sl run --quiet --time 300ms -- sh -c 'trap "" TERM; sleep 60'
  exits 2 sl run --time never -- true 2>/dev/null
  # The walls open more files than the command may.
  same '16 16' "$(sl run --quiet --files 16 -- sh -c 'echo $(ulimit -Sn) $(ulimit -Hn)')"
  exits 2 sl run --files 3 -- true 2>"$T/err"
  grep -q 'cannot limit open files to 3' "$T/err" || fail "$(cat "$T/err")"
  exits 5 sl run --net example.org -- true 2>"$T/err"
  grep -q 'allow list' "$T/err" || fail "no clear sentence: $(cat "$T/err")"
  # A big stream comes through whole, in both directions.
  head -c 3000000 /dev/urandom > "$T/blob"
  same "$(sha256sum < "$T/blob")" "$(sl run --quiet -- cat < "$T/blob" | sha256sum)" 'a stream'
}
both_modes holds

# What the daemon reads by itself, half a second after mounting, is not what the
# command read.
reads_of_its_own() {
  mkdir many
  for n in $(seq 40); do head -c 100000 /dev/zero >"many/$n"; done
  sl stop >/dev/null 2>&1 || true
  sl run --quiet --new --report "$T/reads.json" -- sh -c 'head -c 10 README.md; sleep 3'
  jq -e '.read_bytes < 1000000' "$T/reads.json" >/dev/null || fail "$(cat "$T/reads.json")"
}
both_modes reads_of_its_own

report() {
  LANG=C TERM=dumb exits 3 sl run --quiet --report "$T/report.json" --memory 1G -- \
    sh -c 'echo x > made; exit 3'
  jq -e '.version == 1 and .exit == 3 and .signal == null and .killed_by == null
         and .changed == 1 and .mark_before == "@1" and .mark_after == "@1."
         and (.held.memory | test("cgroup|poll"))' "$T/report.json" > /dev/null ||
    fail "the report: $(cat "$T/report.json")"
  sl log --json | jq -e '.entries[-1].env | length == (unique | length) and index("LANG")' > /dev/null ||
    fail "variables are named twice: $(sl log --json | jq -c '.entries[-1].env')"
}
both_modes report

# What it used is measured and told, by the log too.
usage() {
  head -c 300000 /dev/urandom > big
  sl run --quiet --report "$T/report.json" -- sh -c 'cat big big > /dev/null; head -c 200000 /dev/zero > made
    i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done; sleep 0.2 & sleep 0.2 & wait'
  # The kernel asks once for what it then has, and in pages.
  jq -e '.read_bytes >= 300000 and .read_bytes < 3000000 and .written_bytes >= 200000
         and .written_bytes < 1000000 and .wall_ms >= 200 and .cpu_ms > 0
         and .cpu_user_ms + .cpu_system_ms == .cpu_ms
         and .memory_peak > 500000 and .pids_peak >= 1' "$T/report.json" > /dev/null ||
    fail "the usage: $(cat "$T/report.json")"
  # Looked at now and then, a short-lived process may not be seen.
  if jq -e '.held.pids | test("cgroup")' "$T/report.json" > /dev/null; then
    jq -e '.pids_peak >= 3' "$T/report.json" > /dev/null || fail 'processes'
  fi
  sl log --json | jq -e '[.entries[] | select(.kind == "run")][-1].written_bytes >= 200000' > /dev/null ||
    fail 'the log does not know the usage'
  # Each command's own: the next one has read and written next to nothing.
  sl run --quiet --report "$T/report.json" -- true
  jq -e '.read_bytes < 300000 and .written_bytes == 0' "$T/report.json" > /dev/null ||
    fail "the usage of true: $(cat "$T/report.json")"
}
both_modes usage

# What the quota refuses is counted, in the workspace and in HOME.
refused() {
  sl run --quiet --disk 1M --report "$T/report.json" -- \
    sh -c 'head -c 2000000 /dev/zero > big; head -c 2000000 /dev/zero > ~/big; rm -f big ~/big' 2> /dev/null
  jq -e '.refused.disk >= 2 and .refused.inodes == 0 and .exit == 0
         and .held.disk == "overlay"' "$T/report.json" > /dev/null ||
    fail "the refusals: $(cat "$T/report.json")"
  sl run --quiet --inodes 20 --report "$T/report.json" -- \
    sh -c 'for i in 1 2 3 4 5 6 7 8 9; do true > "a$i"; true > "b$i"; true > "c$i"; done; rm -f ??' 2> /dev/null
  jq -e '.refused.inodes >= 5 and .refused.disk == 0 and .held.inodes == "overlay"' \
    "$T/report.json" > /dev/null || fail "the refusals: $(cat "$T/report.json")"
  sl run --quiet --report "$T/report.json" -- true
  jq -e '.refused | .disk == 0 and .inodes == 0' "$T/report.json" > /dev/null ||
    fail 'refusals of an earlier command'
}
both_modes refused

# RLIMIT_NPROC counts no refusals: that the limit was reached is told as one.
uncounted_forks() {
  local known='.refused.pids > 0 and (.held.pids != "rlimit" or .refused.pids == 1)'
  sl run --quiet --pids 20 --report "$T/report.json" -- \
    sh -c '(for i in $(seq 40); do sleep 30 & done); exec sleep 1' 2> /dev/null || true
  jq -e "$known" "$T/report.json" > /dev/null || fail "refused forks: $(cat "$T/report.json")"
  sl log --json | jq -e ".entries[0] | $known" > /dev/null || fail "log: $(sl log --json)"
  sl run --quiet --report "$T/report.json" -- true
  jq -e '.refused.pids == 0' "$T/report.json" > /dev/null ||
    fail "nothing was refused: $(cat "$T/report.json")"
}
both_modes uncounted_forks

# Limits in which nothing can be done are named, by us or by how it ended.
tiny_limits() {
  exits 2 sl run --memory 1K -- true 2>"$T/err"
  grep -q 'cannot limit memory to 1K: no program runs in less than 1M' "$T/err" ||
    fail "$(cat "$T/err")"
  sl run --pids 1 -- sh -c 'ls | cat' >/dev/null 2>"$T/err" || true
  grep -Eq 'new processes refused once|its limit of one process reached' "$T/err" ||
    fail "--pids 1: $(cat "$T/err")"
  sl run --disk 1 -- sh -c 'echo long >held' 2>"$T/err" || true
  grep -q 'disk space refused once' "$T/err" || fail "--disk 1: $(cat "$T/err")"
  exits 124 sl run --time 1ms -- sleep 60 2>"$T/err"
  grep -q 'ended by its time limit of 1ms' "$T/err" || fail "--time 1ms: $(cat "$T/err")"
  exits 124 sl run --output 1 -- seq 9 >/dev/null 2>"$T/err"
  grep -q 'ended by its output limit of 1B' "$T/err" || fail "--output 1: $(cat "$T/err")"
  # A group counts what starts the command, too.
  local code=0
  "$BUILD/tests/jailrun" -w "$PWD" -R "$T/outcome.$MODE" -l memory=65536 -- \
    sh -c 'sleep 20' 2>"$T/err" || code=$?
  same 124 "$code" "killed before it started: $(cat "$T/err")"
  grep -q 'killed_by=memory' "$T/outcome.$MODE" || fail "$(cat "$T/outcome.$MODE")"
}
both_modes tiny_limits

# The disk that holds the draft is full, and not only its quota.
full_disk() {
  export XDG_STATE_HOME=$SMALL/$MODE
  sl run --quiet -- true
  head -c 100M /dev/zero >"$SMALL/fill" 2>/dev/null || true
  sl run -- sh -c 'head -c 1000000 /dev/zero >big' 2>"$T/err" || true
  grep -q "no room is left at '$XDG_STATE_HOME/stoplog/drafts'" "$T/err" &&
    grep -q '^hint: `stoplog gc` frees' "$T/err" || fail "the run: $(cat "$T/err")"
  exits 6 sl snapshot 2>"$T/err"
  grep -q '^hint: no room is left; what is held stays' "$T/err" || fail "a snapshot: $(cat "$T/err")"
  sl status >/dev/null 2>&1
  rm "$SMALL/fill"
  sl discard -y >/dev/null 2>&1
}
if [ "$(id -u)" -eq 0 ]; then
  export SMALL=$T/small
  mkdir "$SMALL"
  mount -t tmpfs -o size=4m,mode=1777 stoplog-test "$SMALL"
  both_modes full_disk
  umount -l "$SMALL"
fi

# A default that nothing holds is told as such; asked for, it refuses to start.
not_held() {
  mkdir -p "$XDG_CONFIG_HOME/stoplog"
  printf '[limits]\ncpus = 1\nmemory = "1G"\n' > "$XDG_CONFIG_HOME/stoplog/config.toml"
  sl run --quiet --report "$T/report.json" -- true
  if jq -e '.held.cpus == "none"' "$T/report.json" > /dev/null; then
    exits 5 sl run --quiet --cpus 1 -- touch "$PWD/ran" 2> "$T/err"
    grep -q "cannot hold the limit 'cpus'" "$T/err" || fail "$(cat "$T/err")"
    sl run --quiet -- test ! -e "$PWD/ran"
    # So does one that the policy requires.
    printf 'required = ["cpus"]\n' >> "$XDG_CONFIG_HOME/stoplog/config.toml"
    exits 5 sl run --quiet -- true 2> "$T/err"
    grep -q "cannot hold the limit 'cpus'" "$T/err" || fail "$(cat "$T/err")"
  else
    jq -e '.held.cpus | test("^cgroup[12]$")' "$T/report.json" > /dev/null ||
      fail "the report: $(cat "$T/report.json")"
    sl run --quiet --cpus 1 -- true
    printf 'required = ["cpus"]\n' >> "$XDG_CONFIG_HOME/stoplog/config.toml"
    sl run --quiet -- true
  fi
  jq -e '.held.memory | test("^(cgroup[12]|poll)$")' "$T/report.json" > /dev/null ||
    fail "the report: $(cat "$T/report.json")"
}
both_modes not_held
