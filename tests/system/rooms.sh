#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A room can include the rooms it may use and no others: each room's own compile
# command is given a source that tries all of them.
. "$(dirname "$0")/lib.sh" || exit 1
needs python3

declare -A may=(
  [base]='base'
  [fs]='base fs'
  [jail]='base jail'
  [snapshot]='base fs snapshot'
  [diff]='base fs snapshot diff'
  [gate]='base fs snapshot diff gate'
  [draft]='base fs jail snapshot diff gate draft'
  [cli]='base fs jail snapshot diff gate draft cli'
)

# The command that compiles the sources of a room, without source and output.
command_of() {
  python3 - "$BUILD/compile_commands.json" "$TOP/$1/" <<'PY'
import json, os, shlex, sys
for entry in json.load(open(sys.argv[1])):
    if os.path.dirname(entry["file"]) + "/" == sys.argv[2]:
        words = shlex.split(entry["command"])
        words = words[1:] if os.path.basename(words[0]) == "ccache" else words
        print(shlex.join(words[:words.index("-o")]))
        break
PY
}
rooms='base fs jail snapshot diff gate draft cli'
header_of() { (cd "$TOP" && find "$1" -maxdepth 1 -name '*.h' | sort | head -n 1); }

# Which rooms' headers the preprocessor of a room can find: one run for all.
: >"$T/try.cc"
for other in $rooms; do
  header=$(header_of "$other")
  [ -n "$header" ] || continue
  printf '#if __has_include("%s")\nfound %s\n#endif\n' "$header" "$other"
done >"$T/try.cc"
checked=0
for room in $rooms; do
  command=$(command_of "$room")
  [ -n "$command" ] || continue
  found=" $(cd "$BUILD" && eval "$command -E -P -x c++ \"\$T/try.cc\"" |
    sed -n 's/^found //p' | tr '\n' ' ')"
  for other in $rooms; do
    [ -n "$(header_of "$other")" ] || continue
    case " ${may[$room]} " in
      *" $other "*)
        case $found in *" $other "*) ;; *) fail "$room cannot see $other" ;; esac ;;
      *)
        case $found in *" $other "*) fail "$room can include $other" ;; esac
        checked=$((checked + 1)) ;;
    esac
  done
done
[ "$checked" -gt 0 ] || fail 'no wrong include was tried'

# And for once in full: the build of a source with a wrong include fails.
compiles() {
  (cd "$BUILD" && eval "$(command_of base) -fsyntax-only -x c++ \"\$T/try.cc\"") \
    >"$T/log" 2>&1
}
printf '#include "base/fd.h"\n' >"$T/try.cc"
compiles || fail "a right include: $(cat "$T/log")"
printf '#include "fs/view.h"\n' >"$T/try.cc"
not compiles
grep -q 'No such file\|file not found' "$T/log" ||
  fail "it failed for another reason: $(cat "$T/log")"

# The one way round would be a relative include.
cd "$TOP"
not grep -rnE '#include *[<"][^">]*\.\./' --include='*.h' --include='*.cc' \
  base fs jail snapshot diff gate draft cli tests
