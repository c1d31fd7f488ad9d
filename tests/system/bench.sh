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
