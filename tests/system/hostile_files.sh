#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Attacks on files from inside: what is outside stays unread and unwritten.
# ctest: serial
# ctest: timeout 600
. "$(dirname "$0")/lib.sh" || exit 1
. "$TOP/tests/system/jail/adapter.sh"
needs gcc python3

attack() {
  helpers
  case_ FS-01
  J 'for p in /etc/jc1 /usr/bin/jc1 /opt/jc1 /boot/jc1 /jc1 /usr/local/lib/jc1 /usr/lib/jc1 /dev/jc1 /proc/jc1 /sys/jc1 /var/jc1; do
       (echo x >"$p") 2>/dev/null && echo WROTE $p; done; echo RAN'
  ran
  lacks WROTE
  not ls /etc/jc1 /usr/bin/jc1 /opt/jc1 /boot/jc1 /jc1 /usr/local/lib/jc1 2>/dev/null
  J 'echo x > /root/jc1; echo x > /var/tmp/jc1; echo RAN'
  not ls /root/jc1 /var/tmp/jc1 2>/dev/null

  case_ FS-02
  J "ln -sfn $C esc; echo pwn > esc/canary; echo pwn > ../../../../../../../../$C/canary; cat esc/canary; rm -f esc; echo RAN"
  ran
  lacks CANARY
  same CANARY "$(cat "$C/canary")"

  case_ FS-04
  J 'cat ~/.ssh/* ~/.aws/* ~/.netrc ~/.git-credentials ~/.config/gh/* ~/.docker/config.json ~/.npmrc /etc/shadow /root/.bash_history; find / -xdev -name "*decoy*"; echo RAN'
  J "cat $HOME/.ssh/id_decoy $HOME/.netrc $HOME/.npmrc"
  ran
  lacks 'DECOYSECRET|/id_decoy$|root:[^:x]'

  case_ FS-05
  J "for p in /proc/self/root /proc/1/root /proc/\$PPID/cwd /proc/1/cwd /proc/self/task/\$\$/root /proc/self/cwd/../../../../../..; do
       cat \$p$C/canary \$p$HOME/.ssh/id_decoy; done; ls -l /proc/1/root /proc/1/cwd; echo RAN"
  ran
  lacks 'CANARY$|DECOYSECRET'

  case_ FS-07
  J "ln $C/canary hl; ln /etc/passwd hp; ln /usr/bin/env he; ls he hp hl && echo LINKED; echo RAN"
  ran
  lacks LINKED
  same 1 "$(stat -c %h "$C/canary")"

  case_ FS-08
  J 'mount -o remount,rw /usr && echo DONE; mount -o remount,bind,rw / && echo DONE; mount --bind /tmp /etc && echo DONE; umount -l /proc && echo DONE; umount /proc/sys && echo DONE; umount /proc/keys && echo DONE
     awk "\$2 == \"/usr\" || \$2 == \"/\" { print \$2, substr(\$4, 1, 2) }" /proc/mounts; echo RAN'
  ran
  lacks 'DONE|rw$'
  has '^/usr ro$'

  case_ FS-09
  J 'unshare -Urm sh -c "mount -t tmpfs t /usr && echo MOUNTED"; python3 -c "import ctypes;print(ctypes.CDLL(None).unshare(0x10000000))"; cat /proc/sys/user/max_user_namespaces; echo RAN'
  ran
  lacks MOUNTED
  has '^-1$'
  has '^0$'

  case_ FS-10
  J 'helpers/newmount; echo RAN'
  ran
  lacks OPEN

  case_ FS-12
  # Two streams, one file: what mknod says in pieces may lie in the middle of ls.
  J 'exec 2>/dev/null; mknod b b 254 0 && echo MADE; mknod c c 1 5 && echo MADE; mknod w c 0 0 && echo MADE; mknod f p && rm f && echo FIFO
     for d in kvm fuse net/tun loop-control port uinput vhost-vsock mem kmsg vda sda; do [ -e /dev/$d ] && echo PRESENT $d; done; ls /dev; echo RAN'
  ran
  lacks 'MADE|PRESENT'
  has FIFO
  same 'fd full mqueue null ptmx pts random shm stderr stdin stdout tty urandom zero' \
    "$(sed -n '/^FIFO$/,/^RAN$/p' "$OUT" | grep -vE 'FIFO|RAN' | tr '\n' ' ' | sed 's/ $//')"

  case_ FS-13
  J 'cp /bin/bash s && chmod 6755 s && ./s -p -c "id -u; grep NoNewPrivs /proc/self/status"; id -u; sudo -n id; su -c id </dev/null; rm s; echo RAN'
  ran
  lacks 'uid=0|^0$'
  has 'NoNewPrivs:.1'

  case_ FS-15
  J 'echo x > /tmp/jc_tmp; ls -A /tmp /dev/shm /run /var/tmp; echo RAN'
  ran
  [ ! -e /tmp/jc_tmp ] || fail "$CASE: the host's /tmp was written"
  lacks 'ssh-|X11-unix|systemd|dbus'

  case_ FS-18
  exec 9</etc/hostname 8<"$C" 7<>"$C/canary"
  J 'ls /proc/self/fd | sort -n | tail -1; for f in 3 4 5 6 7 8 9 10 11 12; do cat /proc/self/fd/$f /proc/self/fd/$f/canary; done 2>/dev/null; echo pwn > /proc/self/fd/7; echo RAN'
  exec 9<&- 8<&- 7<&-
  ran
  lacks CANARY
  has '^3$' # the directory that ls itself has open
  same CANARY "$(cat "$C/canary")"

  case_ FS-18-streams
  # Not even the caller's own streams enter: through them a read-only file that
  # the caller has open could be opened anew for writing.
  cp "$C/canary" "$T/in-$ADAPTER"
  chmod 666 "$T/in-$ADAPTER"
  run_in_jail -- sh -c 'echo pwn > /proc/self/fd/0; echo RAN' \
    <"$T/in-$ADAPTER" >>"$OUT" 2>&1 || true
  ran
  same CANARY "$(cat "$T/in-$ADAPTER")"

  case_ FS-20
  local launcher=$BUILD/tests/jailrun
  [ "$ADAPTER" = plain ] || launcher=$STOPLOG
  sha256sum "$launcher" >"$T/launchers-$ADAPTER"
  J 'for p in /proc/1/exe /proc/self/exe /proc/$PPID/exe; do (echo pwn > $p) && echo WROTE; dd if=/dev/zero of=$p bs=1 count=1 conv=notrunc && echo WROTE; done 2>&1; echo RAN'
  ran
  lacks WROTE
  sha256sum -c "$T/launchers-$ADAPTER" >/dev/null

  if [ "$ADAPTER" = draft ]; then
    case_ FS-21
    J 'rm -rf -- "$PWD"/* "$PWD"/.[!.]* "$PWD"; cd /; ls "$OLDPWD"; echo RAN'
    ran
    [ -e "$P/README.md" ] || fail "$CASE: the project is gone"
  fi
}
everywhere attack
