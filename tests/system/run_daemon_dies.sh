#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A daemon killed with -9: its command dies with it, nothing that had returned
# is lost, and the next command goes on without being asked.
. "$(dirname "$0")/lib.sh" || exit 1
needs_fuse


# The zygote is forked from the daemon, so the first of them is the daemon.
daemon_pid() {
  local file
  for file in $(printf '%s\n' /proc/[0-9]*/cmdline | sort -t/ -k3n); do
    [ -O "$file" ] || continue
    if [ "$(tr '\0' '\n' < "$file" 2>/dev/null | sed -n 2p)" = daemon ]; then
      file=${file#/proc/}
      echo "${file%/cmdline}"
      return
    fi
  done
}
sleepers() { pgrep -x sleep > /dev/null; }
daemon_gone() { [ -z "$(daemon_pid)" ]; }
no_sleepers() { ! sleepers; }

dies() {
  sl run --quiet -- sh -c 'echo kept > kept'
  sl run --quiet -- sh -c 'echo begun > begun; sleep 7731' 2> "$T/err" &
  local client=$! code=0
  eventually sleepers
  kill -9 "$(daemon_pid)"
  wait "$client" || code=$?
  same 125 "$code" "exit ($(cat "$T/err"))"
  eventually no_sleepers
  # Missing in the record, it would be as if nothing had run.
  eventually daemon_gone
  prints '@2 .*sleep 7731.*lost: ' sl log
  prints '"command":2,.*"killed_by":"supervisor"' sl log --json
  same "$(printf 'kept\nbegun')" "$(sl run --quiet -- cat kept begun 2>&1)"
  same 3 "$(sl log --no-pager | grep -c ' run ')" 'entries of runs'
  sl log --verify > /dev/null
}
both_modes dies
