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
  exits 5 sl run --net example.org -- true 2>"$T/err"
  grep -q 'allow list' "$T/err" || fail "no clear sentence: $(cat "$T/err")"
  # A big stream comes through whole, in both directions.
  head -c 3000000 /dev/urandom > "$T/blob"
  same "$(sha256sum < "$T/blob")" "$(sl run --quiet -- cat < "$T/blob" | sha256sum)" 'a stream'
}
both_modes holds

report() {
  sl run --quiet --report "$T/report.json" --memory 1G -- sh -c 'echo x > made; exit 3' || true
  jq -e '.version == 1 and .exit == 3 and .signal == null and .killed_by == null
         and .changed == 1 and .mark_before == "@1" and .mark_after == "@1."
         and (.held.memory | test("cgroup|poll"))' "$T/report.json" > /dev/null ||
    fail "the report: $(cat "$T/report.json")"
}
both_modes report

# A default that nothing holds is told as such; asked for, it refuses to start.
not_held() {
  mkdir -p "$XDG_CONFIG_HOME/stoplog"
  printf '[limits]\ncpus = 1\nmemory = "1G"\n' > "$XDG_CONFIG_HOME/stoplog/config.toml"
  sl run --quiet --report "$T/report.json" -- true
  if jq -e '.held.cpus == "none"' "$T/report.json" > /dev/null; then
    exits 5 sl run --quiet --cpus 1 -- touch "$PWD/ran" 2> "$T/err"
    grep -q "cannot hold the limit 'cpus'" "$T/err" || fail "$(cat "$T/err")"
    sl run --quiet -- test ! -e "$PWD/ran"
  else
    jq -e '.held.cpus | test("^cgroup[12]$")' "$T/report.json" > /dev/null ||
      fail "the report: $(cat "$T/report.json")"
    sl run --quiet --cpus 1 -- true
  fi
  jq -e '.held.memory | test("^(cgroup[12]|poll)$")' "$T/report.json" > /dev/null ||
    fail "the report: $(cat "$T/report.json")"
}
both_modes not_held
