#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A file of the user's own that he may not read, replaced or removed in the
# draft: what it was is not known. It is named, no commit passes it, and all
# else goes on.
. "$(dirname "$0")/lib.sh" || exit 1
needs jq git
needs_fuse

unreadable() {
  [ "$MODE" = user ] || return 0
  echo secret >shut && echo secret >closed && chmod 200 shut closed
  sl run --quiet -- sh -c 'echo new >n; mv n shut; rm closed; echo other >other'
  sl status --json >"$T/json" || fail 'no status'
  same 'closed other shut' "$(jq -r '[.changes[].path] | sort | join(" ")' "$T/json")"
  same 'closed shut' "$(jq -r '[.changes[] | select(.drift != null).path] | sort | join(" ")' "$T/json")"
  jq -r '.changes[].drift // empty' "$T/json" | grep -q 'cannot be read in the real tree: Permission denied' ||
    fail "$(jq -c .changes "$T/json")"
  sl diff >"$T/patch" 2>/dev/null
  grep -q "^+other" "$T/patch" || fail "no patch: $(cat "$T/patch")"
  exits 6 sl commit -a -y >"$T/said" 2>&1
  grep -q "closed: Permission denied" "$T/said" || fail "$(cat "$T/said")"
  sl discard -y shut closed >/dev/null
  sl commit -a -y >/dev/null 2>&1
  same other "$(cat other)"
  same 200 "$(stat -c %a shut)"
}
both_modes unreadable
