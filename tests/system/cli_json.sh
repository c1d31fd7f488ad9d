#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The contract's JSON, key by key and type by type, and its exit codes of `run`;
# what comes in a later version is absent.
. "$(dirname "$0")/lib.sh" || exit 1
needs git jq
needs_fuse

check() { # check FILE FILTER: the filter must say true
  jq -e "$2" "$1" >/dev/null || fail "$2: $(cat "$1")"
}

schemas() {
  sl run --quiet --report "$T/report" -- sh -c '
    echo more >>README.md; mv src/main.c src/moved.c; ln -s README.md link
    printf "a\0b" >binary; chmod +x .gitignore; echo x >"$(printf "n\377")"
    mkdir build; echo 1 >build/a; echo 2 >build/b; git add -A; git commit -qm inside
    rm README.md; echo back >README.md; mkfifo pipe; mkdir -p .vscode; echo {} >.vscode/tasks.json'

  sl status --json >"$T/json"
  check "$T/json" '.version == 1 and .stale == false and (.draft | type) == "string"'
  check "$T/json" ".workspace == \"$PWD\" and (.digest | test(\"^sha256:[0-9a-f]{64}\$\"))"
  check "$T/json" '[.changes[] | [.path, .kind, .type, .decision] | map(type == "string")] | flatten | all'
  check "$T/json" '[.changes[].kind] - ["added","modified","deleted","renamed","mode","type"] == []'
  check "$T/json" '[.changes[].type] - ["file","dir","symlink","special"] == []'
  check "$T/json" '[.changes[] | has("from","old_mode","new_mode","old_hash","new_hash","size","binary",
    "lines_added","lines_deleted","command","ignored","drift","risks")] | all'
  check "$T/json" '[.changes[] | .risks[] | (.level | IN("danger","warn","info")) and (.code | type) == "string"
    and (.message | type) == "string"] | all and length > 0'
  check "$T/json" '.changes[] | select(.path == "README.md") | .kind == "modified" and .old_mode == "100644"
    and (.old_hash | startswith("xxh3:")) and (.new_hash | startswith("xxh3:")) and .lines_added == 1
    and .lines_deleted == 1 and .command == 1 and .binary == false and .from == null and .drift == null'
  check "$T/json" '.changes[] | select(.path == "src/moved.c") | .kind == "renamed" and .from == "src/main.c"'
  check "$T/json" '.changes[] | select(.path == "link") | .type == "symlink" and .old_mode == null and .new_mode == "120000"'
  check "$T/json" '.changes[] | select(.path == "binary") | .binary == true and .lines_added == null and .size == 3'
  check "$T/json" '.changes[] | select(.path == ".gitignore") | .kind == "mode" and .new_mode == "100755"'
  check "$T/json" '.changes[] | select(.path == "pipe") | .type == "special"'
  check "$T/json" '[.changes[] | select(.path == ".git/")] | length == 1'
  check "$T/json" '[.changes[] | select(.path_bytes == "bv8=")] | length == 1'
  check "$T/json" '.groups == [{"path":"build/","reason":"ignored","files":2,"bytes":4,"deleted":0}]'
  sl diff --json >"$T/diff"
  same "$(jq -c '.changes | map(.path)' "$T/json")" "$(jq -c '.changes | map(.path)' "$T/diff")"
  sl diff --json src >"$T/diff"
  same '["src/moved.c"]' "$(jq -c '.changes | map(.path)' "$T/diff")"

  check "$T/report" '.version == 1 and .command == 1 and .argv[0] == "sh" and .exit == 0 and .signal == null
    and .killed_by == null and .limit == null and .measured == null
    and .refused == {"disk":0,"inodes":0,"pids":0}
    and (.wall_ms | type) == "number" and (.cpu_ms | type) == "number" and (.memory_peak | type) == "number"
    and (.pids_peak | type) == "number" and (.held | has("memory"))
    and ([.cpu_user_ms, .cpu_system_ms, .read_bytes, .written_bytes | type] | all(. == "number"))
    and .network == [] and (.changed | type) == "number" and .mark_before == "@1" and .mark_after == "@1."'
  check "$T/report" ".cwd == \"$PWD\" and (.draft | type) == \"string\""

  # Its own changes, not all that the draft holds.
  sl run --quiet --report "$T/second" -- sh -c 'echo 2 >second'
  check "$T/second" '.changed == 1'
  sl rollback 2>/dev/null >/dev/null

  sl drafts --json >"$T/json"
  check "$T/json" '.version == 1 and (.drafts | length) == 1'
  check "$T/json" ".drafts[0] | .state == \"open\" and .current and .workspace == \"$PWD\" and .commands == 2
    and (.name | type) == \"string\" and (.id | type) == \"string\" and .changes > 5
    and (.created | test(\"^20[0-9-]+T[0-9:.]+Z\$\")) and (.daemon | type) == \"number\" and .mount == null"
  sl reject link --reason 'no links' --json >"$T/json"
  check "$T/json" '.version == 1 and .rejected == ["link"] and (.digest | startswith("sha256:"))'
  sl log --json >"$T/json"
  check "$T/json" '.version == 1 and (.entries[0] | .n == 1 and .kind == "run" and (.time | test("^20[0-9-]+T"))
    and .exit == 0 and (.argv | length) == 3 and has("wall_ms") and has("held"))'
  # A run in it has every field of its report.
  same '[]' "$(jq -nc --slurpfile r "$T/report" --slurpfile l "$T/json" '($r[0] | keys) - ($l[0].entries[0] | keys)')"
  check "$T/json" '[.entries[].kind] - ["run","snapshot","rollback","fork","approve","reject","commit","undo",
    "discard","drift","recover"] == []'
  sl doctor --json >"$T/json" || [ $? -eq 5 ]
  check "$T/json" '.version == 1 and (.ok | type) == "boolean" and (.limits | has("memory"))
    and .limits.disk == "overlay" and .limits.inodes == "overlay"
    and ([.checks[] | (.name | type) == "string" and (.state | IN("ok","warn","fail")) and has("detail")
    and has("hint")] | all) and ([.checks[].name] | index("fuse"))'
}

ends() {
  exits 3 sl run --quiet -- sh -c 'exit 3'
  exits 127 sl run --quiet -- no-such-program 2>/dev/null
  exits 126 sl run --quiet -- ./README.md 2>/dev/null
  exits 143 sl run --quiet -- sh -c 'kill -TERM $$'
  exits 124 sl run --quiet --time 1s --report "$T/report" -- sleep 60
  check "$T/report" '.held.time == "supervisor" and .killed_by == "time" and .limit == 1000 and .measured >= 1000'
  check "$T/report" '.held.disk == "overlay" and .held.inodes == "overlay"'
  # What cannot be reported is not run.
  exits 125 sl run --quiet --report "$T/none/report" -- touch ran 2>"$T/err"
  grep -q 'cannot write the report' "$T/err"
  not sl cat ran >/dev/null 2>&1
  # stdin, stdout and stderr are the command's alone.
  printf 'a\0b\r\n' | sl run --quiet -- cat >"$T/out"
  cmp "$T/out" <(printf 'a\0b\r\n') || fail 'bytes were changed on the way'
  same out "$(sl run -- sh -c 'echo out; echo err >&2' 2>"$T/err")"
  grep -q '^err$' "$T/err"
  same err "$(sl run --quiet -- sh -c 'echo err >&2' 2>&1)" 'quiet'
}

absent() {
  exits 2 sl replay 2>/dev/null
  exits 2 sl mcp 2>/dev/null
  exits 2 sl export --oci x 2>/dev/null
  exits 2 sl diff --html x 2>/dev/null
}

both_modes schemas
both_modes ends
both_modes absent
