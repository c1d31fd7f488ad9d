#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Attacks on the network, on sockets and IPC of the host, and on the kernel.
# ctest: serial
# ctest: timeout 600
. "$(dirname "$0")/lib.sh" || exit 1
. "$TOP/tests/system/jail/adapter.sh"
needs gcc python3 ipcmk

# A server of the host's: TCP on loopback, a socket file, an abstract name.
serve() {
  python3 -c 'import select,socket,sys
t=socket.socket();t.setsockopt(socket.SOL_SOCKET,socket.SO_REUSEADDR,1)
t.bind(("127.0.0.1",18777));t.listen()
u=socket.socket(1);u.bind(sys.argv[1]);u.listen()
a=socket.socket(1);a.bind("\0jc-abs");a.listen();print("up",flush=True)
while True:
  for s in select.select([t,u,a],[],[])[0]:
    c,_=s.accept();c.send(b"CANARY\n");c.close()' "$C/host.sock" >"$T/up" &
  SERVER=$!
  eventually test -s "$T/up"
  chmod 777 "$C/host.sock"
}
unserve() {
  kill "$SERVER"
  wait "$SERVER" 2>/dev/null || true
  rm -f "$T/up" "$C/host.sock"
}

network() {
  case_ NE-01
  J 'timeout 5 bash -c "exec 3<>/dev/tcp/192.0.2.1/80" && echo CONNECTED
     timeout 5 python3 -c "import socket;s=socket.socket(2,2);s.sendto(bytes(4),(\"192.0.2.1\",53));print(\"SENT\")"
     python3 -c "import socket;print([n for _,n in socket.if_nameindex()])"; echo RAN'
  ran
  lacks 'CONNECTED|SENT'
  has "^\['lo'\]$"

  case_ NE-01-loopback
  J 'python3 -c "
import socket,threading
s=socket.socket();s.bind((\"127.0.0.1\",0));s.listen()
threading.Thread(target=lambda:s.accept()[0].send(b\"own\"),daemon=True).start()
print(socket.create_connection(s.getsockname()).recv(3))"'
  has "^b'own'$"

  case_ NE-02
  serve
  python3 -c 'import socket
assert socket.create_connection(("127.0.0.1",18777)).recv(6)==b"CANARY"'
  J 'for h in 127.0.0.1 localhost 0.0.0.0; do
       timeout 3 bash -c "cat </dev/tcp/$h/18777"; done; echo RAN'
  unserve
  ran
  lacks CANARY

  case_ NE-13
  J 'python3 sockets.py families; echo RAN'
  ran
  lacks 'OPEN|Traceback'
}

sockets() {
  case_ IP-01
  serve
  J "python3 sockets.py connect $C/host.sock; echo RAN"
  ran
  lacks CONNECTED

  case_ IP-02
  J 'python3 sockets.py connect @jc-abs; echo RAN'
  unserve
  ran
  lacks CONNECTED

  case_ IP-04
  local id
  id=$(ipcmk -M 4096 -p 0666 | tr -dc 0-9)
  J "ipcs -m; python3 -c 'import ctypes;print(\"AT\",ctypes.CDLL(None).shmat($id,0,0))'
     ls -A /dev/mqueue; echo RAN"
  ipcrm -m "$id"
  ran
  has '^AT -1$'
  lacks '0x[0-9a-f]{8} '

  case_ IP-05
  J 'python3 calls.py keys'
  has '^\[-1, -1, -1, -1\]$'

  case_ IP-06
  SSH_AUTH_SOCK=/x DBUS_SESSION_BUS_ADDRESS=y DISPLAY=:0 WAYLAND_DISPLAY=w \
    GPG_AGENT_INFO=z DOCKER_HOST=d LD_PRELOAD='' J 'env; echo RAN'
  ran
  lacks '^(SSH_AUTH_SOCK|DBUS_|DISPLAY|WAYLAND|GPG_AGENT|DOCKER_HOST|LD_)'
}

kernel() {
  case_ KS-01
  J 'python3 calls.py uring'
  same '-1 38 -1 38 -1 38' "$(tr '\n' ' ' <"$OUT" | sed 's/ $//')" "$CASE"

  case_ KS-02
  J 'python3 calls.py kernel; echo RAN'
  ran
  lacks '^CALL [0-9]+ [0-9]'
  same 10 "$(grep -c CALL "$OUT")" "$CASE"

  case_ KS-03
  J 'helpers/nsflags; echo RAN'
  ran
  lacks OPEN
  has '^clone3 absent$'

  case_ KS-04
  J 'helpers/i80; echo status=$?; echo RAN'
  ran
  lacks OPEN
  [ "$(uname -m)" != x86_64 ] || has '^status=159$' # SIGSYS

  case_ KS-05
  J 'python3 -c "import ctypes;print(\"OPEN\",ctypes.CDLL(None).syscall(0x40000000|39))"; echo RAN'
  ran
  lacks OPEN

  case_ KS-09
  J 'python3 -c "
import os
f=os.memfd_create(\"x\",0)
os.write(f,open(\"/usr/bin/unshare\",\"rb\").read())
print(\"EXEC\",os.spawnv(os.P_WAIT,\"/proc/self/fd/%d\"%f,[\"unshare\",\"-Ur\",\"id\"]))" 2>/dev/null
     perl -e "exec qw(unshare -Ur id)" 2>/dev/null; echo RAN'
  ran
  lacks uid=0
  has '^EXEC [1-9]'

  case_ 'core files are not handed to a program of the host'
  # Only a hard limit of 1 says so (core(5)); it is not to be lowered either.
  J 'ulimit -c 0 && ulimit -S -c 0 && echo SET
     python3 -c "
import resource as r
r.setrlimit(r.RLIMIT_CORE, (0, 0))
r.prlimit(0, r.RLIMIT_CORE) == (1, 1) and print(\"ONE\")
try: r.prlimit(0, r.RLIMIT_CORE, (0, 0)); print(\"OPEN\")
except PermissionError: pass
r.getrlimit(r.RLIMIT_CORE) == (1, 1) and print(\"STILL\")
r.setrlimit(r.RLIMIT_NOFILE, (64, 64)); print(r.getrlimit(r.RLIMIT_NOFILE))"; echo RAN'
  ran
  lacks 'OPEN|Traceback'
  has '^SET$'
  has '^ONE$'
  has '^STILL$'
  has '^.64, 64.$'

  case_ KS-10
  J 'python3 calls.py terminal; echo RAN'
  ran
  lacks 'OPEN|Traceback'
}

attack() {
  helpers
  cp "$TOP"/tests/system/jail/{sockets,calls}.py "$P/"
  network
  sockets
  kernel
}
everywhere attack
