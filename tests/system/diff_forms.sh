#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Every form of a diff of one draft tells the same: patch, export, between any
# two marks, paths, context, ignored files, names, counts; and git agrees.
. "$(dirname "$0")/lib.sh" || exit 1
needs git jq
needs_fuse

try() {
  seq 60 >numbers && echo x >keep && mkdir -p sub build && echo y >sub/f
  git add -A && git commit -qm more
  echo old >build/made
  rm -rf "$T/base" && cp -a . "$T/base"
  sl run --quiet -- sh -c 'sed -i "s/^10$/ten/" numbers; echo one >first; rm keep'
  sl snapshot -m middle >/dev/null
  sl run --quiet -- sh -c 'sed -i "s/^50$/fifty/" numbers; rm first; printf "\0\1" >blob
    echo o >a.o; rm build/made; mkdir made; mv sub/f made/g'

  # To a pipe, and exported: the same patch, without colours, and git takes it.
  sl diff >"$T/patch"
  sl export --patch >"$T/exported"
  cmp "$T/patch" "$T/exported" || fail 'export --patch is another patch'
  sl export --patch "$T/file"
  cmp "$T/patch" "$T/file" || fail 'export --patch FILE is another patch'
  LC_ALL=C grep -q $'\033' "$T/patch" && fail 'colours in a pipe'
  rm -rf "$T/applied" && cp -a "$T/base" "$T/applied"
  (cd "$T/applied" && git apply --binary "$T/patch" && git add -A &&
    git diff --cached --name-status -M HEAD | sort) >"$T/git"
  sl diff --name-status >"$T/names"
  same "$(cat "$T/git")" "$(sort "$T/names")" 'name-status is what git says'
  (cd "$T/applied" && git diff --cached --numstat -M HEAD | awk '$1 != "-" {a += $1; d += $2}
    END {print a, d}') >"$T/counts"
  same "$(cat "$T/counts")" "$(sl status --json | jq -r '[.changes[] | select(.ignored | not)] |
    "\([.[].lines_added // 0] | add) \([.[].lines_deleted // 0] | add)"')" 'lines'
  same "$(sort -z <(sl diff --name-status -z) | tr '\0' '\n' | grep -c .)" \
    "$(tr '\t' '\n' <"$T/names" | grep -c .)" '-z'

  # Paths: a directory is all beneath it, a move is at both of its names.
  same 'numbers' "$(sl diff --name-status numbers | cut -f2)"
  same "$(printf 'R100\tsub/f\tmade/g')" "$(sl diff --name-status made)"
  same "$(printf 'R100\tsub/f\tmade/g')" "$(cd sub && sl diff --name-status .)"

  # Context.
  for n in 0 1 10; do
    sl diff -U "$n" numbers >"$T/context"
    same "$(cd "$T/applied" && git diff --cached -U"$n" HEAD numbers | grep '^[-+@ ]')" \
      "$(grep '^[-+@ ]' "$T/context")" "-U $n"
  done

  # Ignored files are told apart, their deletions always.
  grep -q 'a.o' "$T/names" && fail 'an ignored file in the patch'
  prints '^A.a.o$' sl diff --ignored --name-status
  sl status >"$T/status"
  grep -q '^D  build/made' "$T/status" || fail 'an ignored deletion is not listed'
  same 'a.o 1 build/ 1' "$(sl status --json |
    jq -r '[.groups[] | "\(.path) \(.files)"] | join(" ")')" 'groups'

  # From any mark to any other, in both directions; each leads from one to the other.
  rm -rf "$T/at" && cp -a "$T/base" "$T/at"
  for way in '@1 middle' 'middle @2.' '@2. @1.' '@1. @1' '@1 @2.'; do
    # shellcheck disable=SC2086
    set -- $way
    sl diff --from "$1" --to "$2" >"$T/step"
    (cd "$T/at" && git apply --binary "$T/step") || fail "$way does not apply"
  done
  diff -r --no-dereference -x .git -x build -x a.o "$T/at" "$T/applied" ||
    fail 'the way through the marks leads elsewhere'
  same '' "$(sl diff --from middle --to @1.)" 'nothing happened between'

  exits 1 sl diff --exit-code >/dev/null
  exits 0 sl diff --exit-code README.md
  # The same digest in both, which is that of all, whatever is shown.
  same "$(sl status --json | jq -r .digest)" "$(sl diff --json | jq -r .digest)"
}
both_modes try
