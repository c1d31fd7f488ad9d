#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Whatever ends or stops the review screen, the terminal is as it was and the
# decisions are kept.
. "$(dirname "$0")/lib.sh" || exit 1
. "$TOP/tests/tools/tty.sh"
demo=$BUILD/tests/review_demo
[ -x "$demo" ] || fail "build review_demo first"
mkdir a b s
echo one >b/one
echo two >b/two

review_pid() {
  local exe
  for exe in /proc/[0-9]*/exe; do
    [ "$(readlink "$exe" 2>/dev/null)" = "$(readlink -f "$demo")" ] || continue
    basename "$(dirname "$exe")"
  done | head -n 1
}
# The alternate screen is left, the settings are the same.
start() {
  rm -f s/decisions before after
  tty_start 80 24 "echo shell was here; stty -g >$T/before" \
    "$demo a b s; code=\$?" "stty -g >$T/after; echo exit \$code"
  tty_sees 'undecided'
  tty_send y
  tty_sees '1 of 2 undecided'
}
restored() {
  tty_sees "exit $1"
  tty_sees 'shell was here'
  same "$(cat before)" "$(cat after)" 'terminal settings'
  same 0 "$(tmux_ display -p '#{alternate_on}')" 'alternate screen'
  same 1 "$(tmux_ display -p '#{cursor_flag}')" 'cursor'
}

for signal in TERM:143 HUP:129 INT:130 QUIT:131; do
  start
  kill -"${signal%:*}" "$(review_pid)"
  restored "${signal#*:}"
  grep -qx 'one: approved' s/decisions || fail "lost by ${signal%:*}"
  tty_end
done

# Ctrl-C is a key of the terminal, not of the program.
start
tty_send C-c
restored 130
grep -qx 'one: approved' s/decisions || fail 'lost by Ctrl-C'
tty_end

# A crash.
for signal in SEGV:139 ABRT:134; do
  start
  kill -"${signal%:*}" "$(review_pid)"
  restored "${signal#*:}"
  tty_end
done

# Ctrl-Z: the shell has its terminal back, and fg the screen.
rm -f s/decisions
cat >rc <<'END'
PS1='$ '
END
tty_start 80 24 "exec bash --norc --noprofile --rcfile $T/rc -i"
tty_send 'stty -g > before' Enter "$demo a b s" Enter
tty_sees 'undecided'
tty_send y
tty_sees '1 of 2 undecided'
tty_send C-z
tty_sees 'Stopped'
same 0 "$(tmux_ display -p '#{alternate_on}')" 'alternate screen after Ctrl-Z'
tty_send 'stty -g > after; echo "<$(cmp before after && echo same)>"' Enter
tty_sees '<same>'
tty_resize 100 30
tty_send fg Enter
tty_sees '1 of 2 undecided'
tty_send y
tty_sees '0 of 2 undecided'
tty_send q
tty_sees '0 undecided, 2 approved'
tty_end

# The terminal goes away.
start
pid=$(review_pid)
tty_end
gone() { ! kill -0 "$pid" 2>/dev/null; }
eventually gone
eventually test -e s/decisions
grep -qx 'one: approved' s/decisions || fail 'lost with the terminal'
