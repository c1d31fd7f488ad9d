#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Bombs, floods, sleepers and survivors: contained, ended, and named.
# ctest: serial
# ctest: timeout 900
. "$(dirname "$0")/lib.sh" || exit 1
. "$TOP/tests/system/jail/adapter.sh"
needs python3

# No process of a jail whose arguments hold $1.
gone() { ! pgrep -f "$1" >/dev/null; }

limits() {
  case_ RS-01
  JX 'pids=64 time=4s' 'b() { b | b & }; b; sleep 60'
  # A refused fork leaves the exit code to the shell; else time ends it.
  [ "$RC" = 124 ] || [ "$RC" = 2 ] || fail "$CASE: exit $RC"
  [ "$(outcome held_pids)" != none ] || fail "$CASE: not held"
  [ "$(outcome pids_peak)" -le 66 ] || fail "$CASE: $(outcome pids_peak) processes"
  if [ "$MODE" = root ]; then
    [ "$(outcome refused_pids)" -gt 0 ] || fail "$CASE: no refusal counted"
  fi
  J 'echo ALIVE'
  has ALIVE

  case_ RS-02
  JX 'memory=128M time=20s' 'python3 -c "x=bytearray(4<<30)"; sleep 5; echo SURVIVED'
  same 124 "$RC" "$CASE"
  same memory "$(outcome killed_by)" "$CASE"
  same 134217728 "$(outcome limit)" "$CASE"
  lacks SURVIVED

  case_ RS-02-tmpfs
  # What lies in a tmpfs is memory too.
  JX 'memory=128M time=20s' 'head -c 400M /dev/zero >/tmp/big; sleep 5; echo SURVIVED'
  same memory "$(outcome killed_by)" "$CASE"
  lacks SURVIVED
  J 'rm -f /tmp/big'

  case_ RS-02-memfd
  # A file in memory that no process has mapped.
  JX 'memory=128M time=20s' 'python3 -c "
import os,time
f=os.memfd_create(\"x\")
for i in range(400): os.write(f,bytes(1<<20))
time.sleep(5)"; sleep 5; echo SURVIVED'
  same memory "$(outcome killed_by)" "$CASE"
  lacks SURVIVED

  case_ RS-02-segment
  # Shared memory that nobody is attached to.
  JX 'memory=128M time=20s' 'python3 -c "
import ctypes,time
C=ctypes.CDLL(None)
C.shmat.restype=ctypes.c_void_p
for i in range(100):
  at=C.shmat(C.shmget(0,4<<20,0o1600),None,0)
  ctypes.memset(at,1,4<<20)
  C.shmdt(ctypes.c_void_p(at))
time.sleep(5)"; sleep 5; echo SURVIVED'
  same memory "$(outcome killed_by)" "$CASE"
  lacks SURVIVED

  case_ RS-02-once
  # A mapped file of a tmpfs counts once.
  JX 'memory=200M time=20s' 'python3 -c "
import mmap,time
f=open(\"/dev/shm/once\",\"w+b\")
f.truncate(120<<20)
m=mmap.mmap(f.fileno(),0)
for at in range(0,120<<20,4096): m[at]=1
time.sleep(1)
print(\"FITS\")"; rm -f /dev/shm/once; echo RAN'
  ran
  has FITS

  case_ RS-08
  JX 'output=1M time=20s' 'yes'
  same output "$(outcome killed_by)" "$CASE"
  [ "$(stat -c %s "$OUT")" -le 1200000 ] || fail "$CASE: $(stat -c %s "$OUT")"
  : >"$OUT"
  JX 'output=1M time=20s' 'yes >&2'
  same 124 "$RC" "$CASE"
  [ "$(stat -c %s "$OUT")" -ge 1048576 ] || fail "$CASE: not delivered"
  : >"$OUT"

  case_ RS-10
  JX 'time=1s' 'trap "" TERM INT HUP QUIT; echo START; sleep 1000'
  same 124 "$RC" "$CASE"
  same time "$(outcome killed_by)" "$CASE"
  has START # what was written before is delivered
  # Generous: the machine may be busy. Without the limit it would be 1000 s.
  [ "$(outcome wall_ms)" -le 20000 ] || fail "$CASE: $(outcome wall_ms) ms"
  [ "$(outcome wall_ms)" -ge 1000 ] || fail "$CASE: $(outcome wall_ms) ms"

  case_ RS-11
  JX 'cpu=1s time=60s' 'for i in 1 2 3 4; do while :; do :; done & done; wait'
  same cpu "$(outcome killed_by)" "$CASE"
  # Of the whole tree: four at once would have used 60 s each by the clock.
  [ "$(outcome cpu_ms)" -le 5000 ] || fail "$CASE: $(outcome cpu_ms) ms"
  same 1000 "$(outcome limit)" "$CASE"

  case_ RS-11-unwaited
  # Children whose time the kernel adds to nobody's.
  JX 'cpu=1s time=60s' 'python3 -c "
import os,signal,time
signal.signal(signal.SIGCHLD,signal.SIG_IGN)
for i in range(20):
  if os.fork()==0:
    while time.process_time()<0.4: pass
    os._exit(0)
  try: os.wait()
  except ChildProcessError: pass"; echo SURVIVED'
  same cpu "$(outcome killed_by)" "$CASE"
  lacks SURVIVED

  case_ RS-17
  JX 'time=2s' 'kill -STOP 1; kill -STOP $$'
  same 124 "$RC" "$CASE"
  same time "$(outcome killed_by)" "$CASE"

  case_ RS-20
  JX 'files=100 pids=40' 'ulimit -n; ulimit -n 1000000; ulimit -n; prlimit --pid 1 --nproc=100000 && echo RAISED
     for f in /sys/fs/cgroup/*/*.max /sys/fs/cgroup/*/*limit*; do (echo max > $f) && echo RAISED; done 2>/dev/null
     python3 -c "import resource as r;r.setrlimit(r.RLIMIT_NPROC,(100000,100000))" && echo RAISED
     python3 -c "
import os
n=0
try:
  while n<500: os.open(\"/dev/null\",0); n+=1
except OSError: print(\"FILES\",n)"; echo RAN'
  ran
  has '^FILES 9[0-9]$'
  [ "$(outcome held_files)" = rlimit ] || fail "$CASE: files"
  if [ "$MODE" = user ]; then lacks RAISED; fi
}

store() { du -sm --apparent-size "$XDG_STATE_HOME"/stoplog/drafts/*/segments | sort -n | tail -n 1 | cut -f1; }

# What the draft holds is bounded; a refusal is ENOSPC for the command, and told.
held() {
  case_ RS-04
  JX 'disk=64M time=120s' 'dd if=/dev/zero of=big bs=1M count=4000; echo x >small || echo SMALL; rm -f big small; echo RAN'
  ran
  has 'No space left on device'
  [ "$(store)" -le 96 ] || fail "$CASE: the store has $(store) MB"

  case_ RS-04-home
  # HOME is under the same quota.
  JX 'disk=64M time=120s' 'dd if=/dev/zero of=$HOME/big bs=1M count=4000; rm -f $HOME/big; echo RAN'
  ran
  has 'No space left on device'

  case_ RS-05
  JX 'inodes=1000 time=120s' 'mkdir many; python3 -c "
n=0
try:
  while n<5000: open(\"many/%d\"%n,\"w\").close(); n+=1
except OSError as e: print(\"MADE\",n,e.errno)"; rm -rf many; echo RAN'
  ran
  has '^MADE [0-9]{1,3} 28$'
}

lifetime() {
  case_ RS-12
  J '(setsid sh -c "sleep 7777" >/dev/null 2>&1 &); setsid nohup sleep 7778 & echo RAN'
  ran
  gone '^sleep 777[78]' || fail "$CASE: a survivor"

  case_ RS-12-holding-stdout
  J '(setsid sleep 7779 &); echo RAN'
  ran
  gone '^sleep 7779' || fail "$CASE: a survivor"

  case_ RS-14
  REPLACE=exec run_in_jail -- sh -c 'echo UP; sleep 7780; echo x' </dev/null >"$OUT" 2>&1 &
  local client=$!
  eventually grep -q UP "$OUT"
  eventually pgrep -f '^sleep 7780' >/dev/null
  kill -9 "$client"
  wait "$client" 2>/dev/null || true
  PATIENCE=30 eventually gone '^sleep 7780'
  J 'echo ALIVE'
  has ALIVE

  case_ RS-16
  J 'for i in $(seq 300); do (sleep 0.01 &) ; done
     for i in $(seq 300); do
       n=$(for p in /proc/[0-9]*; do grep -sh "^State" $p/status; done | grep -c Z)
       [ "$n" -gt 5 ] || break
       sleep 0.1
     done; echo $n; echo RAN'
  ran
  awk 'NR == 1 && $1 > 5 { exit 1 }' "$OUT" || {
    show zombies
    fail "$CASE"
  }

  if [ "$ADAPTER" = draft ]; then
    held
  fi

  case_ RS-21
  J 'python3 -c "
import os
for i in range(60):
  os.mkdir(\"d\"*200); os.chdir(\"d\"*200)
open(\"leaf\",\"w\").write(\"x\")
print(\"DEEP\")"; rm -rf ddd*; echo RAN'
  ran
  has DEEP
}

attack() {
  limits
  lifetime
}
everywhere attack
