#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A draft's whole life at random: edits, approvals, commits, undos, rollbacks,
# discards, gc, a killed daemon. scripts/torture runs more seeds.
. "$(dirname "$0")/lib.sh" || exit 1
# ctest: timeout 400
needs python3
needs_fuse

lives() {
  local seed
  for seed in 3 6; do
    python3 "$TOP/tests/lifecycle.py" "$STOPLOG" "$T/life" "$seed" 30
  done
  # A discard where something was moved away; a link committed alone, and back.
  for seed in 110 111; do
    python3 "$TOP/tests/lifecycle.py" "$STOPLOG" "$T/life" "$seed" 40
  done
}
both_modes lives
