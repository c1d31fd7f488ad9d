#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A live draft in which nothing runs takes no processor time: none of its threads
# wakes up, once the walk after mounting and what follows a command are done.
. "$(dirname "$0")/lib.sh" || exit 1
needs_fuse
export PATIENCE=60

# Of the daemon, its guards, its zygote and what that has prepared.
switches() {
  local sum=0 n
  while read -r n; do sum=$((sum + n)); done < <(
    for pid in $(pgrep -u "$(id -u)" 'exe|stoplog'); do
      sed -n 's/^\(non\)\?voluntary_ctxt_switches:[[:space:]]*//p' \
        "/proc/$pid"/task/*/status 2>/dev/null || true
    done
  )
  echo "$sum"
}

asleep() {
  local before
  before=$(switches)
  [ "$before" -gt 0 ] || fail 'no process was looked at'
  sleep 3
  [ "$before" -eq "$(switches)" ]
}

idle() {
  sl run --quiet -- sh -c 'for i in 1 2 3; do echo $i >f$i; done; cat f*' >/dev/null
  # Sealing, the walk and the watch come to rest by themselves.
  eventually asleep
}

both_modes idle
