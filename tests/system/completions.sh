#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The completions of bash, zsh and fish offer commands, options, drafts, marks
# and changed paths, and are printed by `stoplog completion`.
. "$(dirname "$0")/lib.sh" || exit 1
[ -z "${TRACE:-}" ] || set -x
PATH=$(dirname "$STOPLOG"):$PATH

for pair in bash:stoplog.bash zsh:_stoplog fish:stoplog.fish; do
  sl completion "${pair%%:*}" | cmp - "$TOP/completions/${pair#*:}" ||
    fail "completion ${pair%%:*} is not the file that is installed"
done
exits 2 sl completion tcsh 2>/dev/null

workspace
words() { sl __complete -- "$@" | sed 's/\t.*//' | tail -n +2 | tr '\n' ' '; }
same 'switch ' "$(words swi)" 'a command'
same '--verify ' "$(words log --ver)" 'an option'
same 'auto always ' "$(words --color a)" 'a value'
same ':dirs' "$(sl __complete -- -C '' | sed -n 1p)" 'a directory'
same '' "$(words switch '')" 'no draft yet'

# bash, as it would call the function.
complete_bash() {
  bash --norc -c '
    . "$1"
    COMP_LINE=$2 COMP_POINT=${#2}
    read -ra COMP_WORDS <<<"$(sed "s/\([@=:]\)/ \1 /g" <<<"$2")"
    [[ $2 == *" " ]] && COMP_WORDS+=("")
    COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
    _stoplog stoplog "${COMP_WORDS[COMP_CWORD]}"
    printf "%s\n" "${COMPREPLY[@]}"' - "$TOP/completions/stoplog.bash" "$1" |
    tr '\n' ' '
}
same 'switch ' "$(complete_bash 'stoplog swi')" 'bash: a command'
same '--json ' "$(complete_bash 'stoplog log --js')" 'bash: an option'
same 'never ' "$(complete_bash 'stoplog --color=n')" 'bash: a value'

if [[ $(sl --help) == *"  run "* ]]; then
  needs_fuse
  mkdir a
  sl -d calm-otter run --quiet -- sh -c 'echo x >new; echo y >>README.md; mkdir -p a/b; echo z >a/b/c'
  same 'calm-otter ' "$(words switch '')" 'drafts'
  same 'calm-otter ' "$(words -d c)" 'drafts of -d'
  same '@1 @1. ' "$(words rollback '')" 'marks'
  same '@1:new ' "$(words cat @1:n)" 'a path at a mark'
  [[ $(words diff '') == *'README.md '*'new '* ]] || fail "paths: $(words diff '')"
  (cd a && [[ $(words diff b) == 'b b/c ' ]]) || fail 'paths beneath a directory'
  same '../new ' "$(cd a && words diff ../n)" 'paths above'
  # A name is never more than a name, whichever quote was begun.
  for name in '$(touch PWNED)`id`"\!x' "q'\$(touch PWNED)'\"!"; do
    sl run --quiet -- touch -- "$name"
    for quote in '"' "'"; do
      reply=$(complete_bash "stoplog approve $quote${name:0:1}")
      eval "set -- $quote${reply% }$quote"
      same "$name" "$1" "bash: within $quote"
    done
    sl discard -y "$name" >/dev/null
  done
  test ! -e PWNED || fail 'a name was run'
  sl commit -a -y >/dev/null
  same '1 ' "$(words undo '')" 'commits'
fi

# bash itself: which part of a word it replaces is its own affair.
if command -v tmux >/dev/null; then
  . "$TOP/tests/tools/tty.sh"
  sl -d busy-heron run --quiet -- sh -c 'echo 1 >"new one"; echo 2 >>README.md'
  tty_start 80 24 "exec bash --norc"
  tty_send "PS1='$ '; . $TOP/completions/stoplog.bash; clear; echo set''up" Enter
  tty_sees setup
  completes() { # completes TYPED WHOLE: a blank follows, and then what is typed
    tty_send C-u
    tty_send -l "stoplog $1"
    tty_send Tab
    tty_send -l '#'
    tty_sees "stoplog $2 #"
  }
  completes swi 'switch'
  completes 'log --ver' 'log --verify'
  completes 'rollback @1.' 'rollback @1.'
  completes 'diff --from=@1.' 'diff --from=@1.'
  completes 'diff READ' 'diff README.md'
  completes 'diff "READ' 'diff "README.md"'
  completes 'diff new\ o' 'diff new\ one'
  completes 'cat @1.:READ' 'cat @1.:README.md'
  completes '--color=al' '--color=always'
  completes 'switch calm' 'switch calm-otter'
  tty_end
fi

if command -v fish >/dev/null; then
  complete_fish() {
    fish --no-config -c "source $TOP/completions/stoplog.fish; complete -C '$1'" |
      cut -f1 | tr '\n' ' '
  }
  same 'switch ' "$(complete_fish 'stoplog swi')" 'fish: a command'
  same '--verify ' "$(complete_fish 'stoplog log --ver')" 'fish: an option'
  same 'README.md ' "$(complete_fish 'stoplog diff READ')" 'fish: a path'
  same 'calm-otter ' "$(complete_fish 'stoplog switch c')" 'fish: a draft'
  same '@1.:README.md ' "$(complete_fish 'stoplog cat @1.:READ')" 'fish: a path at a mark'
fi

if command -v zsh >/dev/null && command -v tmux >/dev/null; then
  . "$TOP/tests/tools/tty.sh"
  tty_start 80 24 "exec zsh -f"
  tty_send "PS1='$ '; autoload -Uz compinit; compinit -u -D; . $TOP/completions/_stoplog; clear; echo set''up" Enter
  tty_sees setup
  tty_send 'stoplog swi' Tab
  tty_sees 'stoplog switch'
  tty_send C-u 'stoplog log --ver' Tab
  tty_sees 'stoplog log --verify'
  tty_send C-u 'stoplog diff "READ' Tab
  tty_sees 'stoplog diff "README.md"'
  tty_send C-u 'stoplog diff new' Tab
  tty_sees 'stoplog diff new\ one'
  tty_send C-u 'stoplog rollback @1.' Tab
  tty_sees 'stoplog rollback @1.'
  tty_end
fi
