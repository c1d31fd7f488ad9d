#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The helpers of lib.sh do what they promise: small test scripts are run as
# ctest would run them, and what they leave is looked at.
# shellcheck disable=SC2016
. "$(dirname "$0")/lib.sh" || exit 1

# Runs a script of its own with lib.sh; its exit code in $code, output in $out.
script() {
  printf '. "$TOP/tests/system/lib.sh"\n%s\n' "$1" >"$T/script.sh"
  code=0
  # In a world of its own, as from ctest.
  out=$(TMPDIR=$T/tmp STOPLOG_TEST_INSIDE='' bash "$T/script.sh" 2>&1) || code=$?
}
expect() {
  [ "$code" -eq "$1" ] || fail "exit $code, not $1: $out"
  [ -z "$(ls -A "$T/tmp")" ] || fail "files were left: $(ls -A "$T/tmp")"
}
mkdir "$T/tmp"

script 'true'
expect 0
script 'false; true'
expect 1
script 'skip no reason at all'
expect 77
same 'skip: no reason at all' "$out"
script 'not true'
expect 1
script 'not false; exits 3 sh -c "exit 3"; same a a'
expect 0
script 'exits 3 true'
expect 1
script 'same a b'
expect 1
script 'PATIENCE=1; eventually false'
expect 1
script '(sleep 0.3; touch "$T/x") & eventually test -e "$T/x"'
expect 0
script 'needs no-such-program'
expect 77

# A workspace is a clean git work tree, and the real home is out of the way.
script 'workspace; git diff --quiet HEAD; test -f README.md
  case $HOME in "$T"/*) ;; *) fail "HOME is $HOME" ;; esac'
expect 0

# A failing command inside a function is not lost.
script 'f() { false; echo went on; }; f'
expect 1
case $out in *'went on'*) fail 'set -e did not hold in a function' ;; esac

[ "$(id -u)" -eq 0 ] || skip 'the rest needs root'

# What a test starts or mounts ends with it, when it fails too.
script 'sleep 1234.5678 & mkdir m; mount -t tmpfs x m; touch m/f; false'
expect 1
not pgrep -f 'sleep 1234\.5678'
not grep -q " $T/tmp" /proc/self/mountinfo

# The same when it is killed.
printf '. "$TOP/tests/system/lib.sh"\nsleep 1234.8765 & echo $! ; sleep 60\n' \
  >"$T/script.sh"
TMPDIR=$T/tmp STOPLOG_TEST_INSIDE='' bash "$T/script.sh" >"$T/out" &
eventually test -s "$T/out"
kill -KILL $!
wait $! || true
gone() { ! pgrep -f 'sleep 1234\.8765' >/dev/null; }
eventually gone
rm -rf "$T"/tmp/*
# Its control group is left, empty; only a kill -9 of a test does that.
for group in $(groups_left); do rmdir "$group"; done

# A control group that stoplog leaves fails its test, and is removed.
if [ -n "$OWN_GROUP" ]; then
  script 'mkdir "$OWN_GROUP/stoplog-1-2-3"'
  expect 1
  case $out in *'left control group'*) ;; *) fail "a group unseen: $out" ;; esac
  same '' "$(groups_left)" 'groups'
fi

# An ordinary user who may open /dev/fuse, with a home of his own.
script 'as_user sh -c "id -u; id -G; cat /proc/self/status" >out
  same "65533 65533" "$(head -n 2 out | tr "\n" " " | sed "s/ $//")"
  grep -q "^CapEff:.*0000000000000000" out
  as_user sh -c "touch \$HOME/x \$XDG_RUNTIME_DIR/y"
  not as_user touch /root/x 2>/dev/null
  exits 4 as_user sh -c "exit 4"
  [ ! -e /dev/fuse ] || as_user sh -c ": <>/dev/fuse"
  same stoplog-test "$(as_user id -un)"'
expect 0

script 'check() { echo "$MODE $(id -u) $(git rev-parse --is-inside-work-tree)"; }
  both_modes check'
expect 0
case $out in *'root 0 true'*'user 65533 true'*) ;; *) fail "both_modes: $out" ;; esac
script 'check() { [ $MODE = root ]; }
  both_modes check'
expect 1
script 'check() { [ $MODE = user ]; }
  both_modes check'
expect 1

# Two at once do not disturb each other.
printf '. "$TOP/tests/system/lib.sh"\nas_user sh -c "sleep 0.5; : <>/dev/fuse"\n' \
  >"$T/one.sh"
[ ! -e /dev/fuse ] || {
  TMPDIR=$T/tmp STOPLOG_TEST_INSIDE='' bash "$T/one.sh" &
  first=$!
  TMPDIR=$T/tmp STOPLOG_TEST_INSIDE='' bash "$T/one.sh"
  wait "$first"
}

# A process of the program that does not end when asked fails its test.
cp "$(command -v sleep)" "$T/program"
STOPLOG=$T/program script '(trap "" TERM; exec "$STOPLOG" 60) & sleep 0.3'
expect 1
case $out in *'left running'*) ;; *) fail "a process was left unseen: $out" ;; esac
STOPLOG=$T/program script '"$STOPLOG" 60 & sleep 0.3'
expect 0

# The switch for io_uring is set back by whoever ends, however; two tests that
# turn it do not take each other's value for the one to put back.
export RINGS_SWITCH=$T/switch RINGS_LOCK=$T/rings.lock
is_off() { [ "$(cat "$RINGS_SWITCH")" = N ]; }
rings() { # COMMANDS: a test that has the switch
  printf '. "$TOP/tests/fs/rings.sh"\n. "$TOP/tests/system/lib.sh"\n%s\n' "$1"
}
echo N >"$RINGS_SWITCH"
rings 'echo Y >"$RINGS_SWITCH"; touch "$AT/one"; sleep 1000' >"$T/one.sh"
rings 'echo "$RINGS_BEFORE" >"$AT/two"; echo Y >"$RINGS_SWITCH"' >"$T/two.sh"
AT=$T TMPDIR=$T/tmp STOPLOG_TEST_INSIDE='' bash "$T/one.sh" &
one=$!
eventually test -e "$T/one"
AT=$T TMPDIR=$T/tmp STOPLOG_TEST_INSIDE='' bash "$T/two.sh" &
two=$!
sleep 0.3
not test -e "$T/two"
kill -KILL "$one"
wait "$one" || true
wait "$two"
for left in $(groups_left); do eventually rmdir "$left"; done
same N "$(cat "$T/two")"
eventually is_off
rm -rf "$T/tmp/"*
