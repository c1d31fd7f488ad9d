#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A workspace with a submodule: git keeps its git directory inside of the other
# one, and it is understood as any other. A look at it changes nothing; a commit
# in it is told, committed and taken back.
. "$(dirname "$0")/lib.sh" || exit 1
needs git jq
needs_fuse

try() {
  export GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0=protocol.file.allow
  export GIT_CONFIG_VALUE_0=always
  git init -q -b main "$T/library-$MODE"
  (cd "$T/library-$MODE" && echo one >f && git add f && git commit -qm first)
  git submodule add -q "$T/library-$MODE" lib
  git commit -qm sub
  before=$(git -C lib rev-parse HEAD)

  touch -d '2 hours ago' lib/f README.md
  sl run --quiet -- sh -c 'git -C lib status --short; git status --short
    touch lib/f; git -C lib update-index --refresh; git update-index --refresh'
  same '[]' "$(sl status --json | jq -c .changes)" 'after a look'

  sl run --quiet -- sh -c 'cd lib; echo two >>f
    git -c user.name=t -c user.email=t@t commit -qam "in the library"'
  sl status >"$T/out"
  grep -q '^M  .git/modules/lib/  .*in the library' "$T/out" || fail "$(cat "$T/out")"
  grep -q danger "$T/out" && fail "ordinary work: $(cat "$T/out")"
  same 'lib/f .git/modules/lib/' "$(sl status --json |
    jq -r '[.changes[].path] | sort | reverse | join(" ")')" 'rows'
  sl commit -a -y
  same 'in the library' "$(git -C lib log -1 --format=%s)"
  same '' "$(git -C lib status --short)" 'the submodule is clean'
  git -C lib fsck --no-dangling
  same 0 "$(sl status --json | jq '.changes | length')" 'what is left'
  sl undo
  same "$before" "$(git -C lib rev-parse HEAD)" 'taken back'
  same '' "$(git -C lib status --short)" 'clean again'

  sl run --quiet --new -- sh -c 'mkdir -p .git/modules/lib/hooks
    echo x >.git/modules/lib/hooks/post-checkout; chmod +x .git/modules/lib/hooks/*
    rm -r .git/modules/lib/objects'
  sl status >"$T/out"
  grep -q 'danger git-hook' "$T/out" || fail 'a hook of a submodule'
  exits 4 sl commit -a -y
}
both_modes try
