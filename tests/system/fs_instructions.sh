#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What an operation of the tree costs in instructions, which repeat where times
# do not: no more than when it was last looked at and a fifth, and no more in a
# tree ten times as large.
. "$(dirname "$0")/lib.sh" || exit 1
needs valgrind
TREECOST=$BUILD/tests/treecost
[ -x "$TREECOST" ] || skip 'treecost is not built'
if ldd "$TREECOST" 2>/dev/null | grep -q 'lib[at]san'; then
  skip 'a build with sanitizers counts their instructions'
fi

total() { # WHAT COUNT
  mkdir "$T/bed"
  valgrind --tool=callgrind --callgrind-out-file=/dev/null \
    "$TREECOST" "$1" "$2" "$T/bed" 2>"$T/said" || fail "$(cat "$T/said")"
  rm -rf "$T/bed"
  sed -n 's/.*Collected : //p' "$T/said"
}

each() { # WHAT FROM: of a thousand operations after the first FROM
  local few many
  few=$(total "$1" "$2")
  many=$(total "$1" $(($2 + 1000)))
  echo $(((many - few) / 1000))
}

while read -r what most; do
  small=$(each "$what" 300)
  large=$(each "$what" 3000)
  echo "$what: $small instructions, $large after ten times as many (most $most)"
  [ "$small" -gt 100 ] || fail "$what: $small instructions cannot be all"
  [ "$small" -le "$most" ] || fail "$what takes $small instructions, not $most"
  [ "$large" -le $((most * 5 / 4)) ] ||
    fail "$what grows: $small instructions at first, then $large"
done <<'END'
lookup 5800
create 20400
append 4500
scatter 6500
marked 16500
unlink 30400
mark 3300
replay 29800
away 29200
back 36000
moved 9800
END
