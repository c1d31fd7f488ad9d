#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The closing lines of scripts/test: counts, reasons of skips, the output of what
# failed, and what the tests left behind.
. "$(dirname "$0")/lib.sh" || exit 1
needs python3
# From in here we cannot see who else runs stoplog on this machine.
export STOPLOG_SHARED_MACHINE=1
mkdir "$T/tmp" "$T/build"
python3 "$TOP/tests/leftovers.py" before "$T/tmp" "$T/build"

results() {
  printf '<testsuite name="x">%s</testsuite>' "$1" >"$T/results.xml"
  code=0
  out=$(python3 "$TOP/tests/summary.py" "$T/results.xml" "$T/tmp" "$T/build") ||
    code=$?
  last=${out##*$'\n'}
}
pass='<testcase name="a" status="run" time="1"><system-out>fine</system-out></testcase>'
bad='<testcase name="b" status="fail" time="1"><failure message=""/><system-out>it broke here</system-out></testcase>'
skip='<testcase name="c" status="notrun" time="0"><skipped message=""/><system-out>skip: no fuse</system-out></testcase>'
lost='<testcase name="d" status="notrun" time="0"><failure message="Unable to find executable"/></testcase>'

# That nothing is left behind counts as one more test.
results "$pass$pass"
same 0 "$code"
same '3 passed, 0 failed, 0 skipped' "$last"
results "$pass$bad$skip"
same 1 "$code"
same '2 passed, 1 failed, 1 skipped' "$last"
case $out in *'--- failed: b'*'it broke here'*) ;; *) fail "output: $out" ;; esac
case $out in *'skipped: c: no fuse'*) ;; *) fail "reason: $out" ;; esac
results "$pass$lost"
same '2 passed, 1 failed, 0 skipped' "$last"
results ''
same 1 "$code" 'no test at all'
rm "$T/results.xml"
code=0
out=$(python3 "$TOP/tests/summary.py" "$T/results.xml" "$T/tmp" "$T/build") || code=$?
same 1 "$code" 'no results'

# Left behind: a file, a mount, a process of the build.
touch "$T/tmp/forgotten"
results "$pass"
same 1 "$code"
case $out in *"file $T/tmp/forgotten"*) ;; *) fail "a file was not seen: $out" ;; esac
rm "$T/tmp/forgotten"
cp "$(command -v sleep)" "$T/build/stoplog"
"$T/build/stoplog" 100 &
results "$pass"
case $out in *"process $! "*) ;; *) fail "a process was not seen: $out" ;; esac
[ "$(id -u)" -ne 0 ] || {
  mkdir "$T/tmp/m"
  mount -t tmpfs stoplog-test "$T/tmp/m"
}
results "$pass"
[ "$(id -u)" -ne 0 ] ||
  case $out in *"mount $T/tmp/m"*) ;; *) fail "a mount was not seen: $out" ;; esac

# And all of it can be removed.
python3 "$TOP/tests/leftovers.py" clean "$T/tmp" "$T/build"
[ ! -e "$T/tmp" ] || fail 'files are still there'
gone() { ! kill -0 $! 2>/dev/null; }
eventually gone
not grep -q "$T/tmp" /proc/self/mountinfo
