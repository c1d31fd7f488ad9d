# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# Drives a program on a terminal of its own: tmux is the terminal, so what is
# asserted is what a person would see. Sourced after tests/system/lib.sh.
#
#   tty_start 80 24 "command"   a terminal of that size, running a shell script
#   tty_send KEYS...            as tmux send-keys: 'j' Enter Escape C-z
#   tty_sees TEXT               waits until the screen shows TEXT
#   tty_matches REGEX           the same, a line as `grep` matches it
#   tty_lacks TEXT              waits until it does not
#   tty_screen                  the screen as text
#   tty_resize COLUMNS ROWS
needs tmux
# A socket for each: a server that is going down would take a new client along.
TTY=0

tmux_() { tmux -f /dev/null -S "$T/tmux-$TTY" "$@"; }
tty_start() {
  local columns=$1 rows=$2
  shift 2
  TTY=$((TTY + 1))
  printf '%s\n' "$@" >"$T/tty-script"
  LC_ALL=C.UTF-8 TERM=screen-256color tmux_ new-session -d -x "$columns" \
    -y "$rows" "bash $T/tty-script; echo '[script over]'; sleep 1000"
}
tty_send() { tmux_ send-keys "$@"; }
tty_screen() { tmux_ capture-pane -p; }
tty_shows_() { grep -qF -- "$1" <<<"$(tty_screen)"; }
tty_matches_() { grep -q -- "$1" <<<"$(tty_screen)"; }
tty_not_() { ! tty_shows_ "$1"; }
tty_dump_() {
  echo "--- the screen:" >&2
  tty_screen >&2
}
tty_sees() {
  (eventually tty_shows_ "$1") || { tty_dump_; fail "never on screen: $1"; }
}
tty_matches() {
  (eventually tty_matches_ "$1") || { tty_dump_; fail "never on screen: $1"; }
}
tty_lacks() {
  (eventually tty_not_ "$1") || { tty_dump_; fail "still on screen: $1"; }
}
tty_resize() { tmux_ resize-window -x "$1" -y "$2"; }
tty_end() { tmux_ kill-server 2>/dev/null || true; }
