#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The demonstration of README.md works as typed, as root and as a user.
. "$(dirname "$0")/lib.sh" || exit 1
needs_fuse

demonstration() {
  cd "$T"
  # The indented block beneath its heading, with the program under test.
  sed -n '/^## Thirty seconds/,/^## /s/^    //p' "$TOP/README.md" |
    sed "s|^stoplog=[^ ]*|stoplog=$STOPLOG|" >demo.sh
  [ "$(wc -l <demo.sh)" -ge 8 ] || fail 'no demonstration in README.md'
  TMPDIR=$T PAGER=cat bash -eu demo.sh >out 2>err || fail "$(cat out err)"
  # Held, shown, real, taken back.
  same 'hello a.txt hello agent new hello a.txt' "$(grep -xE \
    'hello|agent|new|a\.txt|b\.txt' out | tr '\n' ' ' | sed 's/ $//')"
  grep -q '^+agent$' out
  grep -q '^+++ b/b.txt' out
}
both_modes demonstration
