#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Directories that the draft holds something in are removed, moved and made
# anew in the real tree: the view shows what stands there now, and goes on to.
. "$(dirname "$0")/lib.sh" || exit 1
. "$TOP/tests/fs/mount.sh"
needs_fuse

lists() { [ "$(echo $(ls "$1" 2>/dev/null))" = "$2" ]; }
shows() { [ "$(cat "$1" 2>/dev/null)" = "$2" ]; }
gone() { [ ! -e "$1" ]; }
open_has() { [ "$(stat -L -c %s "/proc/self/fd/$1")" = "$2" ]; }

replaced() {
  local b=$T/b m=$T/m d sign file
  mkdir -p "$b"/{removed,moved,twice}/sub
  for d in removed moved twice; do
    echo before >"$b/$d/sub/f"
    echo before >"$b/$d/old"
  done
  fs_mount "$b" "$m" "$@"
  for d in removed moved twice; do
    echo mine >"$m/$d/sub/mine"
    ls -R "$m/$d" >/dev/null
    cat "$m/$d/later" "$m/$d/sub/later" 2>/dev/null && fail 'not there yet'
  done
  cd "$m/removed/sub" # keeps what the kernel knows of it
  rm -rf "$b/removed"
  mv "$b/moved" "$T/away"
  mv "$b/twice" "$T/away2"
  eventually lists "$m/removed/sub" mine
  mkdir -p "$b"/{removed,moved,twice}/sub
  for d in removed moved twice; do
    echo after >"$b/$d/sub/f2"
    echo later >"$b/$d/later"
    echo later >"$b/$d/sub/later"
    eventually lists "$m/$d" 'later sub'
    eventually lists "$m/$d/sub" 'f2 later mine'
    eventually shows "$m/$d/later" later
    eventually shows "$m/$d/sub/later" later
    eventually gone "$m/$d/old"
    # And what comes next is told again.
    echo next >"$b/$d/next"
    echo next >"$b/$d/sub/next"
    eventually lists "$m/$d" 'later next sub'
    eventually lists "$m/$d/sub" 'f2 later mine next'
    rm "$b/$d/sub/f2"
    eventually lists "$m/$d/sub" 'later mine next'
    echo edited >"$b/$d/sub/next"
    eventually shows "$m/$d/sub/next" edited
    # To who has it open too, whatever else happens to the directory.
    exec {file}<"$m/$d/sub/next"
    touch -d '2001-01-01' "$b/$d/sub"
    for sign in one two; do # events come in order, and some together
      echo "$sign" >"$b/$d/$sign"
      eventually shows "$m/$d/$sign" "$sign"
    done
    rm "$b/$d/one" "$b/$d/two"
    open_has "$file" 7 || fail 'an open file has another size'
    echo more >>"$b/$d/sub/next"
    eventually open_has "$file" 12
    exec {file}<&-
  done
  # Nothing of the one that stood there.
  echo wrong >"$T/away/sub/wrong"
  mv "$b/twice" "$T/away3"
  mkdir -p "$b/twice/sub"
  eventually lists "$m/twice" sub
  echo third >"$b/twice/sub/third"
  eventually lists "$m/twice/sub" 'mine third'
  lists "$m/moved/sub" 'later mine next' || fail 'what stood there shows'
  [ "$(pwd -P)" = "$m/removed/sub" ] || fail 'the working directory is lost'
  cd /
  fs_unmount
  rm -rf "$b" "$m" "$m.draft" "$T"/away*
}
if [ "$(id -u)" -eq 0 ]; then replaced --way privileged; fi
ordinary() { replaced --way fusermount; }
run_as_user ordinary
