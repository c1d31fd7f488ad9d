#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Directories that a commit shuts to their owner: an ordinary user's commit with
# such is all or nothing, too, wherever it fails or dies.
. "$(dirname "$0")/lib.sh" || exit 1
needs jq git strace
needs_fuse

prepare() {
  old='d 755 e 755 '
  new='aaa 111 bbb 555 ccc 0 d 755 e 555 '
  mkdir d e
  echo 1 >d/a
  echo 1 >e/a
  git add -A && git commit -qm more
  sl run --quiet -- sh -c 'mkdir -p aaa/in bbb/in ccc; echo 1 >aaa/in/f
    echo 1 >bbb/in/f; echo 1 >ccc/f; echo 2 >e/a; echo 2 >e/n; echo 2 >d/n
    chmod 0 aaa/in ccc; chmod 111 aaa; chmod 555 bbb/in bbb e'
  sl approve --all --danger >/dev/null 2>&1
}
modes() { stat -c '%n %a' aaa bbb ccc d e 2>/dev/null | tr '\n' ' '; }

# A later step fails: all that came goes again.
fails() {
  [ "$MODE" = user ] || return 0
  prepare
  chmod 555 d
  exits 6 sl commit 2>"$T/said"
  not grep -q 'next command' "$T/said"
  same 'd 555 e 755 ' "$(modes)" 'after a step that failed'
  same '' "$(find . -name '.stoplog-*' -o -name n)" 'what is left over'
  chmod 755 d
  sl commit >/dev/null
  same "$new" "$(modes)" 'once it can be done'
  chmod -R u+rwx aaa bbb ccc e
}
both_modes fails

# It dies at one call or another: the next command ends it, one way or the other.
dies() {
  [ "$MODE" = user ] || return 0
  strace -o /dev/null true 2>/dev/null || return 0
  local call n rc=0 ended=0
  for call in renameat2 chmod,fchmodat syncfs,fsync unlinkat; do
    for n in $(seq 1 40); do
      workspace "$T/w-$call-$n"
      prepare
      strace -f -o /dev/null -e trace="$call" -e inject="$call:signal=KILL:when=$n" \
        "$STOPLOG" commit >/dev/null 2>&1 && rc=0 || rc=$?
      sl status >/dev/null 2>"$T/said" || fail "$call $n: $(cat "$T/said")"
      case $(modes) in
        "$old") same '1 1' "$(cat d/a e/a | tr '\n' ' ' | xargs)" "$call $n" ;;
        "$new") same '2 2' "$(cat d/n e/a | tr '\n' ' ' | xargs)" "$call $n" ;;
        *) fail "$call $n: a mixture: $(modes)" ;;
      esac
      same '' "$(find . -maxdepth 1 -name '.stoplog-*')" "$call $n, left over"
      chmod -R u+rwx . && cd "$T" && rm -rf "$T/w-$call-$n"
      ended=$((ended + 1))
      [ "$rc" -ne 0 ] || break
    done
  done
  [ "$ended" -gt 10 ] || fail "only $ended points were tried"
}
both_modes dies
