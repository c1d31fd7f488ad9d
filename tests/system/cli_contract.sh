#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What holds for every command: the form of errors and their exit codes, the
# nearest word, exact paths in JSON, nothing hostile on a terminal, and a word
# where an empty answer looks like a mistake.
. "$(dirname "$0")/lib.sh" || exit 1
. "$TOP/tests/tools/tty.sh"
needs git jq
needs_fuse

# says CODE TEXT [HINT] -- CMD...: "stoplog: cannot …" with the text, and the hint.
says() {
  local code=$1 text=$2 hint='' got=0
  shift 2
  [ "$1" = -- ] || { hint=$1 && shift; }
  shift
  "$@" >"$T/out" 2>"$T/err" || got=$?
  same "$code" "$got" "$* exited"
  grep -q '^stoplog: cannot ' "$T/err" || fail "$*: not in the form: $(cat "$T/err")"
  grep -qF -- "$text" "$T/err" || fail "$*: no «$text»: $(cat "$T/err")"
  grep -q '^hint: ' "$T/err" || [ -z "$hint" ] || fail "$*: no hint: $(cat "$T/err")"
  grep -qF -- "$hint" "$T/err" || fail "$*: no «$hint»: $(cat "$T/err")"
  [ ! -s "$T/out" ] || fail "$*: said something on stdout: $(cat "$T/out")"
}

errors() {
  says 2 "unknown command" "did you mean 'status'?" -- sl statsu
  says 2 "unknown command" "did you mean 'commit'?" -- sl help comit
  says 2 "unknown option '--jsn'" "did you mean '--json'?" -- sl status --jsn
  says 2 "unknown option '--json'" "the options of 'status' stand after it" -- sl --json status
  says 2 "unknown option '--colour'" "did you mean '--color'?" -- sl --colour always status
  says 2 "takes no argument 'x'" "see" -- sl status x
  says 2 "needs an argument" "see" -- sl show
  says 2 "needs a value" -- sl -d
  says 2 "auto, always or never" -- sl --color pink status
  says 2 "No such file or directory" -- sl -C "$T/none" status
  says 2 "No such file or directory" -- sl --workspace "$T/none" status
  (mkdir "$T/gone-$MODE" && cd "$T/gone-$MODE" && rmdir "$PWD" &&
    says 2 "current directory: it was removed" "go to one that is there" -- sl status)
  says 2 "unknown command" "did you mean 'rollback'?" -- sl rollb
  says 2 "not a directory" -- sl --workspace "$PWD/README.md" status
  says 2 "cannot find draft 'none'" "lists them" -- sl -d none status
  says 2 "print a completion" "bash, zsh, fish" -- sl completion ksh
  says 2 "no commit" "log --commits" -- sl undo
  says 2 "no commit 7" "log --commits" -- sl undo 7
  says 2 "no draft over" "starts one" -- sl commit
  says 2 "no commit 7 in this workspace" "log --commits" -- sl show 7
  says 2 "COMMIT: 'x' is not a number from 1 upwards" -- sl show x
  says 2 "bad value '5x' of --time: not a duration such as 90s" "run --help" -- sl run --time 5x true
  says 2 "bad value '1X' of --memory: not a size such as 512M" "run --help" -- sl run --memory 1X true
  says 2 "bad value 'two' of --cpus: not a number of processors" "run --help" -- sl run --cpus two true
  says 2 "bad value '-3' of --pids: '-3' is not a number from 1 upwards" -- sl run --pids -3 true
  says 2 "bad value '=x' of --env: not NAME or NAME=VALUE" -- sl run --env =x true
  sl run --quiet -- sh -c 'echo x >>README.md'
  says 2 "nothing changed at x" "lists what is held" -- sl approve x
  says 2 "nothing changed at x" "lists what is held" -- sl reject x
  says 2 "nothing is held at 'x'" "lists what is held" -- sl discard -y x
  says 2 "the draft has no file 'x'" "lists what is held" -- sl cat x
  says 2 "the draft has no file 'x' there" "lists what is held" -- sl cat @1:x
  # Another command's mark is never what was meant.
  says 2 "no mark '@11'" "\`stoplog log\` lists them" -- sl rollback @11
  mkdir -p "$XDG_CONFIG_HOME/stoplog"
  printf '[limits\n' >"$XDG_CONFIG_HOME/stoplog/config.toml"
  says 2 "config.toml:1:8: no TOML: parsing table header" "man 5 stoplog.toml" -- sl run true
  printf '[limits]\npids = "few"\n' >"$XDG_CONFIG_HOME/stoplog/config.toml"
  says 2 "config.toml:2:8: limits.pids must be a number" "man 5 stoplog.toml" -- sl run true
  rm "$XDG_CONFIG_HOME/stoplog/config.toml"
}

# An empty answer is explained, on stderr alone.
nothing() {
  for command in status diff log; do
    sl $command >"$T/out" 2>"$T/err"
    [ ! -s "$T/out" ] || fail "$command without a draft: $(cat "$T/out")"
    grep -q 'no draft here' "$T/err" || fail "$command: $(cat "$T/err")"
  done
  sl run --quiet -- true
  sl diff >"$T/out" 2>"$T/err"
  grep -q 'nothing is held' "$T/err"
  sl run --quiet -- sh -c 'echo x >>README.md'
  sl diff Readme.md >"$T/out" 2>"$T/err"
  grep -q "nothing is held at 'Readme.md'" "$T/err" || fail "$(cat "$T/err")"
  grep -q 'lists what is held' "$T/err"
  sl run --quiet -- sh -c 'echo x >.git/hooks/pre-commit'
  sl diff .git/hooks/pre-commit >"$T/out" 2>"$T/err"
  [ ! -s "$T/out" ] || fail "a patch of git's own files: $(cat "$T/out")"
  grep -q '1 change inside .git left out' "$T/err" || fail "$(cat "$T/err")"
  sl diff README.md 2>"$T/err" >/dev/null
  [ ! -s "$T/err" ] || fail "a patch with words: $(cat "$T/err")"
}

# What `status` lists is what it counts, and what -z names.
counts() {
  sl run --quiet -- sh -c 'mkdir -p build/empty .github; echo o >build/x; echo x >>README.md
    git mv src/main.c src/moved.c; mkdir empty; echo evil >.git/hooks/pre-commit'
  sl status >"$T/out" 2>"$T/err"
  grep -q '^4 changes \|^5 changes \|^6 changes ' "$T/out" || fail "$(cat "$T/out")"
  local listed
  listed=$(sed -n 's/^\([0-9]*\) changes.*/\1/p' "$T/out")
  grep -q "^hint: $listed changes to decide" "$T/err" || fail "$listed: $(cat "$T/err")"
  sl status -z | tr '\0' '\n' >"$T/names"
  grep -qx '.git/hooks/pre-commit' "$T/names" || fail "no hook: $(cat "$T/names")"
  grep -qx '.git/' "$T/names"
  grep -qx 'empty' "$T/names"
  same $((2 * listed + 1)) "$(wc -l <"$T/names")" 'letters and names of all'
  same 'A' "$(sed -n 1p "$T/names")" 'the danger first'
  sl approve --all >/dev/null 2>"$T/err"
  grep -q '^stoplog: 1 file that git ignores stays held' "$T/err" || fail "$(cat "$T/err")"
  sl approve .git/hooks/pre-commit >/dev/null 2>&1
  sl commit 2>"$T/err" >/dev/null
  grep -q '^stoplog: still held: 1 file that git ignores' "$T/err" || fail "$(cat "$T/err")"
}

# Where the policy commits what git ignores, that is listed and counted like the
# rest; `diff` shows it when it is asked for.
ignored_too() {
  sl run --quiet -- sh -c 'echo o >x.o; echo x >>README.md'
  same README.md "$(sl status --json | jq -r '[.changes[].path] | join(" ")')" 'held back'
  mkdir -p "$XDG_CONFIG_HOME/stoplog"
  printf '[gate]\nignored = "commit"\n' >"$XDG_CONFIG_HOME/stoplog/config.toml"
  sl status >"$T/out" 2>"$T/err"
  grep -q '^A  x.o' "$T/out" || fail "$(cat "$T/out")"
  grep -q '^2 changes ' "$T/out" || fail "$(cat "$T/out")"
  grep -q '^hint: 2 changes to decide' "$T/err" || fail "$(cat "$T/err")"
  same 'README.md x.o' "$(sl status --json | jq -r '[.changes[].path] | join(" ")')"
  same "$(printf 'M\tREADME.md')" "$(sl diff --name-status 2>/dev/null)"
  sl commit -a -y >"$T/out" 2>&1
  grep -q '^committed 2 changes' "$T/out" || fail "$(cat "$T/out")"
  same o "$(cat x.o)"
  rm "$XDG_CONFIG_HOME/stoplog/config.toml"
}

exact_paths() {
  odd=$(printf 'n\377')
  sl run --quiet --report "$T/report" -- sh -c 'echo x >"$1"; echo y >"a\\b"; echo z >>README.md' - "$odd"
  same bv8= "$(jq -r '.argv_bytes[4]' "$T/report" | base64 -d | base64)" 'argv of the report'
  same bv8= "$(sl approve "$odd" --json | jq -r '.approved_bytes[0]')" approve
  same bv8= "$(sl reject "$odd" --json | jq -r '.rejected_bytes[0]')" reject
  same 'a\b' "$(sl approve 'a\b' --json | jq -r '.approved[0]')" 'a backslash'
  same bv8= "$(sl log --json | jq -r '.entries[] | select(.kind == "reject").paths_bytes[0]')" 'the record'
  sl fork second >/dev/null 2>&1
  same bv8= "$(sl drafts --json | jq -r '.drafts[0].overlaps[0].paths_bytes[2]')" overlaps
  sl approve --all >/dev/null 2>&1
  sl commit --json | jq -c . >"$T/json"
  same 'a\b' "$(jq -r '.approvals[].path' "$T/json" | grep '^a')" 'the receipt'
}

# A patch for eyes is escaped, by whatever command it is printed.
terminal() {
  sl run --quiet -- sh -c 'printf "bad \033[31mred\r\n" >>README.md'
  tty_start 100 30 "cd '$PWD'; '$STOPLOG' export --patch; echo over"
  tty_sees over
  tty_sees 'bad ^[[31mred^M'
  tty_end
  sl export --patch | grep -q "$(printf 'bad \033')" || fail 'a pipe gets the bytes'
  # A question names what it is about.
  sl run --quiet -- sh -c 'for i in $(seq 11 30); do echo x >new$i; done'
  tty_start 100 30 "cd '$PWD'; '$STOPLOG' commit -a; echo over"
  tty_sees 'approve and commit 21 changes? [y/N]'
  tty_sees '  README.md'
  tty_sees '  new19'
  tty_sees '  and 11 more'
  tty_lacks new20
  tty_send n Enter
  tty_sees over
  tty_end
  # Sentences break at blanks, under where they began.
  tty_start 50 60 "'$STOPLOG' doctor; echo over"
  tty_sees over
  tty_sees 'limits: time by supervisor,'
  tty_screen >"$T/screen"
  not grep -vE '^((ok|warn|fail)  ? ?[a-z0-9_]+ +[^ ]| {17}[^ ]|limits: |[a-z].* by |inodes by|by overlay|over$|\[script over|$|`stoplog run)' \
    "$T/screen"
  tr '\n' ' ' <"$T/screen" | tr -s ' ' | grep -q 'disk and inodes by overlay' || fail "$(cat "$T/screen")"
  tty_end
}

# What somebody makes meanwhile in a directory that the draft made too is drift.
drifts() {
  sl run --quiet -- sh -c 'mkdir -p d/e; echo 1 >d/f; echo 2 >d/e/g; echo 3 >d/e/h'
  same '' "$(sl status --json | jq -r '.changes[] | select(.drift).path')"
  mkdir -p d/e
  echo real >d/e/g
  same d/e/g "$(sl status --json | jq -r '.changes[] | select(.drift).path')"
}

# A receipt that cannot be written stops a commit before it writes anything;
# one that fails afterwards does not call it undone.
receipt() {
  sl run --quiet -- sh -c 'echo x >>README.md'
  sl approve README.md >/dev/null 2>&1
  says 6 'cannot write the receipt' -- sl commit --receipt "$T/none/receipt"
  says 2 'cannot write the receipt' -- sl commit --receipt "$T/"
  says 2 "cannot write the receipt '$T': it is a directory" -- sl commit --receipt "$T"
  same hello "$(cat README.md)" 'the real file'
  # A name that is too long is found out by the rename.
  sl commit --receipt "$T/$(printf '%0300d' 0)" >"$T/out" 2>"$T/err"
  grep -q 'committed 1 change' "$T/out"
  grep -q 'the commit is done, but the receipt is not written' "$T/err" || fail "$(cat "$T/err")"
  same 'hello x' "$(xargs <README.md)" 'the real file'
  same committed "$(sl drafts --json | jq -r '.drafts[0].state')"
}

# A result that cannot be written is an error; where the real tree has it
# already, it is said.
full() {
  [ -c /dev/full ] || skip 'no /dev/full'
  sl run --quiet -- sh -c 'echo x >>README.md; echo n >n'
  local command
  for command in version --help 'help commit' status 'status --json' 'status -z' diff \
    'diff --stat' 'diff --json' 'diff --exit-code' log 'log --json' drafts 'drafts --json' \
    'ps --json' 'cat n' 'export --patch' 'policy show' 'completion bash' 'gc --dry-run' \
    'fork other' 'snapshot -m here --json' 'rollback here' 'commit -a -y --dry-run'; do
    # shellcheck disable=SC2086
    says 6 'cannot write the result: No space' -- to_full $command
  done
  same other "$(sl drafts --json | jq -r '.drafts[1].name')"
  to_full commit -a -y 2>"$T/err"
  grep -q 'the commit is done, but cannot write the result' "$T/err" || fail "$(cat "$T/err")"
  same n "$(cat n)"
  says 6 'cannot write the result' -- to_full show 1
  to_full undo --json 2>"$T/err"
  grep -q 'the undo is done, but cannot write the result' "$T/err" || fail "$(cat "$T/err")"
  test ! -e n
}
to_full() { sl "$@" >/dev/full; }

# Where a file cannot be written, nothing is compared and packed first.
export_place() {
  sl run --quiet -- sh -c 'echo x >>README.md'
  mkdir "$T/place"
  mkfifo "$T/fifo"
  says 2 "cannot write '$T/place': it is a directory" -- sl export "$T/place"
  says 2 "cannot write '$T/place': it is a directory" -- sl export --patch "$T/place"
  says 2 "it is no file's name" -- sl export "$T/place/"
  says 2 "cannot write '$T/fifo': it is no file" -- sl export --patch "$T/fifo"
  same '' "$(ls -A "$T/place")"
  sl export "$T/draft" >/dev/null
  sl export "$T/draft" >/dev/null
}

both_modes errors
both_modes full
both_modes export_place
both_modes receipt
both_modes drifts
both_modes nothing
both_modes counts
both_modes exact_paths
both_modes ignored_too
terminal_() {
  workspace "$T/w-terminal"
  terminal
}
terminal_

# What this version cannot hold is not called open.
mkdir -p "$XDG_CONFIG_HOME/stoplog"
printf '[network]\nallow = ["example.org"]\n' >"$XDG_CONFIG_HOME/stoplog/config.toml"
prints 'host example.org: denied: this version cannot hold' sl policy check example.org
prints 'no network: this version cannot hold' sl policy check 'make test'
# A command may have slashes in it, and a file blanks.
prints '^command ./configure --prefix=/usr: runs in the jail' sl policy check './configure --prefix=/usr'
mkdir -p "$T/w-blank" && touch "$T/w-blank/a b"
prints '^path a b: ' sl -C "$T/w-blank" policy check 'a b'
