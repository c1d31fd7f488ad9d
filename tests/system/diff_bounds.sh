#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Content that is meant to hurt: memory stays within 256 MB, the output says
# where something is not shown in full, and nothing is left out.
. "$(dirname "$0")/lib.sh" || exit 1
needs git python3

tool=$BUILD/tests/difftool
[ -x "$tool" ] || skip 'difftool is not built'
mkdir "$T/base" "$T/draft"

# Runs a command; fails when its memory went beyond MB.
within() {
  local mb=$1
  shift
  python3 - "$mb" "$@" <<'PY'
import resource, subprocess, sys
code = subprocess.call(sys.argv[2:])
peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss // 1024
if peak > int(sys.argv[1]):
    sys.exit(f"{peak} MB of memory")
sys.exit(code)
PY
}

# A change of 100 MB that does not compress, as a patch that git takes.
head -c 50M /dev/urandom >"$T/base/large"
head -c 50M /dev/urandom >"$T/draft/large"
within 128 "$tool" "$T/base" "$T/draft" patch >"$T/patch"
(cd "$T/base" && git apply --binary "$T/patch")
cmp "$T/base/large" "$T/draft/large" || fail 'the large file is not the same'

# Holes of a terabyte, one line of 2 GB, many files, a deep tree.
rm "$T/base/large" "$T/draft/large" "$T/patch"
truncate -s 1T "$T/draft/hole" 2>/dev/null || truncate -s 1G "$T/draft/hole"
truncate -s 2G "$T/draft/line"
seq 5000 | while read -r i; do echo "$i" >"$T/draft/f$i"; done
(
  cd "$T/draft"
  for _ in $(seq 60); do mkdir d && cd d; done
  echo leaf >leaf
)
echo 'precious' >"$T/base/notes"
for form in list json terminal stat name-status summary; do
  within 256 timeout 120 "$tool" "$T/base" "$T/draft" "$form" >"$T/$form"
  grep -q notes "$T/$form" || fail "$form leaves the deletion out"
done
for name in hole line f5000 leaf; do
  grep -q "$name" "$T/list" || fail "the list leaves $name out"
done
grep -q '^D  notes' <(head -1 "$T/list") || fail 'the deletion is not first'
grep -q 'too large to be shown by lines' "$T/terminal" ||
  fail 'nothing says that the large file is not shown'
within 256 timeout 120 "$tool" "$T/base" "$T/draft" patch \
  >"$T/patch" 2>"$T/left-out"
grep -q "'hole' has more than" "$T/left-out" ||
  fail 'nothing says that the patch lacks a content'
