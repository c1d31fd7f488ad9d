#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Started with standard streams closed, the program writes its words into
# nothing: not into the journal, the record or the files that are committed, one
# of which would else have taken the number of the stream.
. "$(dirname "$0")/lib.sh" || exit 1
needs git jq strace
needs_fuse

# closed IN OUT ERR CMD...: each "-" is closed.
closed() {
  local in=$1 out=$2 err=$3
  shift 3
  (
    [ "$in" = - ] && exec <&- || exec </dev/null
    [ "$out" = - ] && exec >&- || exec >/dev/null
    if [ "$err" = - ]; then exec 2>&-; else exec 2>/dev/null; fi
    exec "$@"
  )
}

streams() {
  local in out err n=0
  for in in - +; do for out in - +; do for err in - +; do
    n=$((n + 1))
    # The command's own words go nowhere; what it writes is held.
    closed $in $out $err "$STOPLOG" run --new -- sh -c "echo words; echo more >&2; echo line $n >made$n; echo kept >kept$n" ||
      fail "run $in$out$err: $?"
    closed $in $out $err "$STOPLOG" status || [ "$out" = - ] || fail "status $in$out$err"
    closed $in $out $err "$STOPLOG" snapshot -m here || [ "$out" = - ] || fail "snapshot $in$out$err"
    closed $in $out $err "$STOPLOG" approve "made$n" || [ "$out" = - ] || fail "approve $in$out$err"
    closed $in $out $err "$STOPLOG" commit || [ "$out" = - ] || fail "commit $in$out$err"
    same "line $n" "$(cat "made$n")" "what was committed with $in$out$err"
    sl log --verify >/dev/null 2>"$T/err" || fail "the record, $in$out$err: $(cat "$T/err")"
    sl undo >/dev/null 2>&1
    test ! -e "made$n" || fail "undo after $in$out$err"
    same "kept$n" "$(sl status --json 2>"$T/err" | jq -r '[.changes[].path] | join(" ")')" "the draft, $in$out$err"
    not grep -q damaged "$T/err"
    sl discard -y >/dev/null 2>&1
  done; done; done
  # Nothing but what holds their place has the number of a stream.
  sl run --quiet --new -- sh -c 'echo x >file; echo y >other'
  local words
  for words in 'status' 'approve file' 'commit' 'snapshot -m there' 'run true'; do
    # shellcheck disable=SC2086
    closed - - - strace -f -o "$T/calls" -e trace=open,openat,openat2,dup,socket "$STOPLOG" $words || true
    grep -E ' = [012]$' "$T/calls" >"$T/taken" || fail "$words: nothing holds the streams"
    not grep -v '/dev/null' "$T/taken"
  done
  # A result that cannot be written is an error, as on a full disk.
  exits 6 closed + - + "$STOPLOG" status
  exits 6 closed + - + "$STOPLOG" diff
}
both_modes streams
