#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Attacks on processes and /proc from inside.
# ctest: serial
# ctest: timeout 600
. "$(dirname "$0")/lib.sh" || exit 1
. "$TOP/tests/system/jail/adapter.sh"
needs python3

attack() {
  case_ PR-01
  J 'ls /proc | grep -c "^[0-9]"; echo RAN'
  ran
  awk 'NR == 1 && $1 > 8 { exit 1 }' "$OUT" || {
    show 'too many'
    fail PR-01
  }

  case_ PR-02
  SECRET_TOKEN=DECOYSECRET AWS_SECRET_ACCESS_KEY=DECOYSECRET \
    J 'env; tr "\0" "\n" </proc/1/environ; cat /proc/1/cmdline
       for p in /proc/[0-9]*/environ; do tr "\0" "\n" <$p; done; echo RAN'
  ran
  lacks 'DECOYSECRET|jailrun|daemon|--state'

  case_ PR-03
  cp "$TOP/tests/system/jail/kernel_files.py" "$P/"
  J 'python3 kernel_files.py; echo RAN'
  ran
  lacks 'OPEN|TELLS'

  case_ PR-04
  # Only ever inside: the signals must not reach what supervises.
  cp "$TOP/tests/system/jail/signal_all.py" "$P/"
  J 'python3 signal_all.py; true'
  ran
  J 'echo ALIVE'
  has ALIVE

  case_ PR-05
  cp "$TOP/tests/system/jail/trace_init.py" "$P/"
  J 'python3 trace_init.py; echo RAN'
  ran
  lacks 'OPEN|READ'
  has '^TRACED OWN 0$'

  case_ PR-07
  J 'nsenter -t 1 -a id && echo IN
     for n in mnt net pid user ipc uts cgroup; do
       nsenter --$n=/proc/1/ns/$n id && echo IN
       nsenter --$n=/proc/self/ns/$n true && echo IN; done; echo RAN'
  ran
  lacks '^IN$'

  case_ identity
  J 'cat /proc/self/uid_map /proc/self/gid_map
     grep -E "^(Cap|Uid|Seccomp:)" /proc/self/status; id -u; echo RAN'
  ran
  has 'CapEff:.0000000000000000'
  has 'CapBnd:.0000000000000000'
  has 'Seccomp:.2'
  lacks '^ *[0-9]+ +0 +1$' # host root is not mapped
}
everywhere attack
