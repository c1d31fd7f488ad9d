#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What no patch shows: the mode of the workspace's own directory, access lists
# and other attributes. Each is a row, is approved, committed and taken back.
. "$(dirname "$0")/lib.sh" || exit 1
needs jq git python3
needs_fuse

row() { sl status --json | jq -c --arg p "$1" '.changes[] | select(.path == $p) | [.kind, .type, .old_mode, .new_mode]'; }
risks() { sl status --json | jq -r --arg p "$1" '.changes[] | select(.path == $p) | .risks[] | "\(.level) \(.code)"' | sort | tr '\n' ' '; }
mode() { stat -c %a "$1"; }
get() { python3 -c 'import os,sys
try: print(os.getxattr(sys.argv[1], sys.argv[2]).hex())
except OSError: print("none")' "$1" "$2"; }
# An access list: owner, the user with permissions $3, group, mask, others.
acl() { sl run --quiet -- python3 -c 'import os,struct,sys
e=[(1,7,-1),(2,int(sys.argv[3]),os.getuid()),(4,5,-1),(16,7,-1),(32,5,-1)]
os.setxattr(sys.argv[1], "system.posix_acl_"+sys.argv[2], struct.pack("<I",2)+b"".join(struct.pack("<HHi",*x) for x in e))' "$@"; }

# The top itself has a new mode: it stands in nobody's way.
top() {
  chmod 755 .
  sl run --quiet -- sh -c 'chmod 700 .; echo n >new'
  same '["mode","dir","040755","040700"]' "$(row .)" 'the row of the top'
  sl diff >"$T/patch"
  git apply --check "$T/patch"
  sl approve new >/dev/null
  sl commit >/dev/null 2>&1
  same n "$(cat new)"
  same 755 "$(mode .)"
  same '["mode","dir","040755","040700"]' "$(row .)" 'what was not approved stays held'
  sl approve --all >"$T/out"
  grep -qx '  \.' "$T/out" || fail "the top has no name: $(cat "$T/out")"
  sl commit --dry-run >"$T/out" 2>/dev/null
  grep -q ' \.' "$T/out" || fail "the top has no name: $(cat "$T/out")"
  sl commit >/dev/null 2>&1
  same 700 "$(mode .)"
  same '[]' "$(sl status --json | jq -c .changes)"
  same '["."]' "$(sl show --json 2 | jq -c '[.changes[].path]')"
  same '["."]' "$(sl log --json | jq -c '[.entries[] | select(.kind == "commit")][-1].paths')"
  # An edit of it since is drift, and named.
  chmod 711 .
  exits 3 sl undo 2>"$T/out"
  grep -q '\. ' "$T/out" || fail "drift of what: $(cat "$T/out")"
  chmod 700 .
  sl undo >/dev/null 2>&1
  same 755 "$(mode .)"
  same n "$(cat new)"
  same '[]' "$(sl status --json | jq -c .changes)" 'an undo is no change of the draft'
  sl undo 3 >/dev/null 2>&1
  same 700 "$(mode .)" 'the undo of an undo'
  # Drift before a commit.
  sl run --quiet -- chmod 750 .
  sl approve --all >/dev/null
  chmod 701 .
  exits 3 sl commit 2>"$T/out"
  grep -q ': \.$' "$T/out" || fail "drift of what: $(cat "$T/out")"
  sl discard -y . >/dev/null
  same '[]' "$(sl status --json | jq -c .changes)" 'discarded'
  same 701 "$(sl run --quiet -- stat -c %a .)" 'the draft shows the real one again'
  chmod 755 .
}

# Access lists and attributes, of what is new and of what is there.
lists() {
  [ "$(get . user.none)" = none ] || fail 'the probe'
  python3 -c 'import os; os.setxattr(".", "user.probe", b"x"); os.removexattr(".", "user.probe")' 2>/dev/null ||
    { echo 'no user attributes here'; return 0; }
  mkdir old && echo o >old/f && git add -A && git commit -qm old
  sl run --quiet -- sh -c 'mkdir made; echo m >made/f; mkdir plain; echo p >plain/f; echo t >tagged
    python3 -c "import os; os.setxattr(\"tagged\", \"user.origin\", b\"somewhere\")"'
  acl made default 7
  acl old access 5
  same 'danger acl-write ' "$(risks made)" 'a default list for another user'
  same 'warn acl ' "$(risks old)" 'an access list'
  same 'warn attribute ' "$(risks tagged)"
  same '' "$(row plain)" 'a directory without any is told by what is in it'
  sl status 2>/dev/null | grep -q 'lets user' || fail "nobody is named: $(sl status)"
  digest=$(sl status --json | jq -r .digest)
  acl made default 3
  [ "$digest" != "$(sl status --json | jq -r .digest)" ] || fail 'the digest does not bind a list'
  acl made default 7
  # Approved by what is in it, the directory comes without.
  sl approve --all >"$T/out" 2>&1
  sl commit >/dev/null 2>&1
  same m "$(cat made/f)"
  same none "$(get made system.posix_acl_default)" 'a danger came along'
  same "$(printf somewhere | od -An -tx1 | tr -d ' \n')" "$(get tagged user.origin)"
  [ "$(get old system.posix_acl_access)" != none ] || fail 'the approved list did not come'
  same 'danger acl-write ' "$(risks made)" 'what was left is still held'
  sl approve made >/dev/null
  sl commit >/dev/null 2>&1
  [ "$(get made system.posix_acl_default)" != none ] || fail 'named, and did not come'
  same '[]' "$(sl status --json | jq -c .changes)"
  # What is made in there now has it from its directory: nothing of its own.
  sl run --quiet -- sh -c 'mkdir made/in; echo i >made/in/f'
  same '' "$(row made/in)" 'inherited'
  same '' "$(risks made/in/f)"
  sl commit -a -y >/dev/null 2>&1
  [ "$(get made/in system.posix_acl_default)" != none ] || fail 'an inherited list was lost'
  # A danger at the top: its path means all beneath it, and names nothing.
  acl . access 7
  same 'danger acl-write ' "$(risks .)"
  exits 4 sl approve . >/dev/null 2>&1
  sl approve --all --danger >/dev/null
  sl commit >/dev/null 2>&1
  [ "$(get . system.posix_acl_access)" != none ] || fail 'approved, and did not come'
  for _ in 1 2 3 4; do sl undo >/dev/null 2>&1; done
  test ! -e made || fail 'an undo left a directory'
  same none "$(get old system.posix_acl_access)"
  same none "$(get . system.posix_acl_access)"
}

# A directory that its owner may not enter: an undo of his would fail there, so
# that it comes as such only when it is approved by name, and is never untold.
shut() {
  sl run --quiet -- sh -c 'mkdir -p a/in b; echo 1 >a/in/f; echo 2 >b/f
    chmod 0 README.md a/in; chmod 311 b'
  same 'danger locked ' "$(risks a/in)" 'of a directory that comes with a file'
  same 'danger locked ' "$(risks b)"
  same 'danger locked ' "$(risks README.md)"
  exits 4 sl commit -a -y 2>"$T/out"
  sl approve a/in/f b/f >/dev/null
  sl commit >/dev/null 2>&1
  same '700 711' "$(mode a/in) $(mode b)" 'nobody approved what shuts them'
  same 644 "$(mode README.md)"
  sl undo >/dev/null
  test ! -e a || fail 'it was not taken back'
  sl undo 2 >/dev/null
  same 'danger locked ' "$(risks a/in)" 'it stays held'
  sl commit -a --danger -y >/dev/null 2>&1
  same '0 311 0' "$(mode a/in) $(mode b) $(mode README.md)" 'approved as dangers'
  chmod 755 a/in
}

for part in ${*:-top lists}; do
  echo "== $part"
  workspace "$T/$part"
  "$part"
done
echo "== shut"
both_modes shut
