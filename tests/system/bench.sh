#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The benchmark runs, says what it could not measure, and writes a table, JSON
# and a plot. Nothing is asserted about time.
. "$(dirname "$0")/lib.sh" || exit 1
needs python3 git
needs_fuse
[ "$(id -u)" -eq 0 ] || skip 'the benchmark needs root'
[ -n "${STOPLOG_TEST_INSIDE:-}" ] || skip 'no mount namespace'

bench() { (cd "$TOP" && TMPDIR=$T PYTHONDONTWRITEBYTECODE=1 \
  python3 bench/run.py --on tmpfs --quick --rounds 2 --files 60 --out "$T/out" \
  --stoplog "$T/no-such-program" "$@"); }
bench --only 'find' >"$T/said" 2>&1 || fail "$(cat "$T/said")"
grep -q '^find + stat: warm' "$T/said" || fail "$(cat "$T/said")"
grep -q '^not measured: stoplog: .*no-such-program is not built' "$T/said"
python3 - "$T/out.json" "$T/out.svg" <<'PY'
import json, sys
import xml.etree.ElementTree as xml
data = json.load(open(sys.argv[1]))
native = [r for r in data["rows"] if r["view"] == "native"]
assert native and all(r["ratio_min"] == 1 and r["rounds"] == 2 for r in native), native
assert any("stoplog" in line for line in data["about"]["missing"])
xml.parse(sys.argv[2])
PY
[ -z "$(find "$T" -maxdepth 1 -name 'stoplog-bench.*')" ] || fail 'its bed was left'

# How costs grow: a plot and a table for each axis.
(cd "$TOP" && TMPDIR=$T PYTHONDONTWRITEBYTECODE=1 python3 bench/run.py --growth \
  --quick --only file --on tmpfs --stoplog "$STOPLOG" --out "$T/out") >"$T/said" 2>&1 ||
  fail "$(cat "$T/said")"
grep -q '^  append one byte ' "$T/said" || fail "$(cat "$T/said")"
python3 - "$T/out-growth.json" "$T/out-growth-bytes-of-a-sparse-file.svg" <<'PY'
import json, sys
import xml.etree.ElementTree as xml
data = json.load(open(sys.argv[1]))
assert all(len(row["seconds"]) == 3 for row in data["rows"]), data["rows"]
assert not data["about"]["missing"], data["about"]["missing"]
xml.parse(sys.argv[2])
PY
[ -z "$(find "$T" -maxdepth 1 -name 'stoplog-bench.*')" ] || fail 'its bed was left'

# Small operations while something large goes on (bench_ops is played here).
printf '#!/bin/sh\necho 900 1000 2000 3000 4000\n' >"$T/ops"
chmod +x "$T/ops"
(cd "$TOP" && TMPDIR=$T PYTHONDONTWRITEBYTECODE=1 python3 bench/run.py --tail \
  --quick --rounds 1 --files 60 --on tmpfs --ops "$T/ops" --stoplog "$STOPLOG" \
  --out "$T/out") >"$T/said" 2>&1 || fail "$(cat "$T/said")"
grep -q '^native, create: p99 ' "$T/said" || fail "$(cat "$T/said")"
grep -q '^stoplog, unlink: max ' "$T/said" || fail "$(cat "$T/said")"
[ -z "$(find "$T" -maxdepth 1 -name 'stoplog-bench.*')" ] || fail 'its bed was left'

# The tricks of the mount, each with and without, and which requests that makes.
(cd "$TOP" && TMPDIR=$T PYTHONDONTWRITEBYTECODE=1 python3 bench/run.py --only switches \
  --quick --rounds 1 --files 60 --on tmpfs --views native --ops "$T/ops" \
  --fsd "$BUILD/tests/fsd" --stoplog "$STOPLOG" --out "$T/out") >"$T/said" 2>&1 ||
  fail "$(cat "$T/said")"
grep -q '^switches: open+read+close warm .*µs' "$T/said" || fail "$(cat "$T/said")"
not grep -q '^not measured' "$T/said"
python3 - "$T/out-switches.json" <<'PY'
import json, sys
views = {row["view"] for row in json.load(open(sys.argv[1]))["rows"]}
assert views == {"as it is", "no polling", "opens answered", "a reader a processor"}, views
PY

# What was measured takes its place in a document, and nothing else does.
printf 'above\n<!-- measured: files -->\nold\n<!-- end -->\n' >"$T/doc"
printf '<!-- measured: program -->\nkept\n<!-- end -->\nbelow\n' >>"$T/doc"
bench --only 'find' >"$T/said" 2>&1 || fail "$(cat "$T/said")"
rm -f "$T/out-"*.json
(cd "$TOP" && PYTHONDONTWRITEBYTECODE=1 python3 bench/aims.py "$T/out" "$T/doc") >"$T/said" ||
  fail "$(cat "$T/said")"
grep -q '^| find + stat, settled / warm | [0-9]' "$T/doc" || fail "$(cat "$T/doc")"
grep -q '^| npm ci | not measured |' "$T/doc" || fail "$(cat "$T/doc")"
not grep -q '^old$' "$T/doc"
grep -q '^kept$' "$T/doc"
grep -q '^below$' "$T/doc"
