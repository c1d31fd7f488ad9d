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
compiles() {
  (cd "$BUILD" && eval "$1 -fsyntax-only -x c++ \"\$T/try.cc\"") >"$T/log" 2>&1
}

checked=0
for room in "${!may[@]}"; do
  command=$(command_of "$room")
  [ -n "$command" ] || continue
  : >"$T/try.cc"
  compiles "$command" || fail "$room: an empty source: $(cat "$T/log")"
  for other in base fs jail snapshot diff gate draft cli; do
    header=$(cd "$TOP" && find "$other" -maxdepth 1 -name '*.h' | sort | head -n 1)
    [ -n "$header" ] || continue
    printf '#include "%s"\n' "$header" >"$T/try.cc"
    case " ${may[$room]} " in
      *" $other "*)
        compiles "$command" || fail "$room may include $other: $(cat "$T/log")" ;;
      *)
        not compiles "$command"
        grep -q 'No such file\|file not found' "$T/log" ||
          fail "$room failed on $other for another reason: $(cat "$T/log")"
        checked=$((checked + 1)) ;;
    esac
  done
done
[ "$checked" -gt 0 ] || fail 'no wrong include was tried'

# The one way round would be a relative include.
cd "$TOP"
not grep -rnE '#include *[<"][^">]*\.\./' --include='*.h' --include='*.cc' \
  base fs jail snapshot diff gate draft cli tests
