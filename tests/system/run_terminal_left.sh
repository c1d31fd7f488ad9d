#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A command that leaves the terminal in the middle of a sequence, hiding, on
# another screen or in other letters: the summary behind it is read all the same.
. "$(dirname "$0")/lib.sh" || exit 1
needs_fuse
. "$TOP/tests/tools/tty.sh"
workspace

# What is left, as printf writes it.
for left in '\033]0;' '\033P' '\033_' '\033[3' '\033[8m' '\033(0' '\016\033)0' \
  '\033[30;40m' '\033[?1049h' '\033[?1047h' '\033[1;2r' '\033[?6h\033[2;3r' \
  '\033[?25l' '\033[?1003h\033[?1006h' '\033[?2004h' '\033[?1h\033='; do
  tty_start 100 20 "cd $W" \
    "$STOPLOG run -- sh -c 'echo x >>new; printf \"BEGUN\\n\"; printf \"$left\"'" \
    "echo ' OVER'; sleep 1000"
  tty_sees ' OVER'
  tty_sees 'stoplog: command'
  tty_sees 'held: 1 change'
  tmux_ capture-pane -ep >"$T/screen"
  grep 'stoplog: command' "$T/screen" >"$T/line"
  if grep -qP '\x1b\[[0-9;]*\b(8|30|40)m' "$T/line"; then
    fail "$left: nobody sees $(cat -v "$T/line")"
  fi
  same '0 1 0 0 0 19' "$(tmux_ display -p \
    '#{alternate_on} #{cursor_flag} #{mouse_any_flag} #{keypad_cursor_flag} #{scroll_region_upper} #{scroll_region_lower}')" \
    "what $left left behind"
  tty_end
done
sl discard -y >/dev/null 2>&1

# Who reads its output through a pipe writes to the terminal, too.
tty_start 60 20 "cd $W" \
  "$STOPLOG run --quiet -- sh -c 'seq 3; sleep 1' | sed -u s/^/line-/" \
  "echo ' OVER'; sleep 1000"
tty_sees ' OVER'
tty_matches '^line-2$'
tty_matches '^line-3$'
tty_end
