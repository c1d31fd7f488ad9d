#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A workspace whose git directory lies elsewhere (a linked work tree, a
# submodule): git works inside to look, never to write, and `.git` opens no
# other directory.
# ctest: timeout 300
. "$(dirname "$0")/lib.sh" || exit 1
needs git
needs_fuse

# inside WORKSPACE CMD...
inside() {
  local at=$1
  shift
  sl --workspace "$at" run --quiet -- "$@" </dev/null
}

linked() {
  git worktree add -q "$PWD-linked" -b side
  local at=$PWD-linked
  echo "  a linked work tree"
  echo changed >"$at/README.md"
  prints '^ M README.md$' inside "$at" git status --porcelain
  prints '^first$' inside "$at" git log --format=%s
  prints '^+changed$' inside "$at" git diff
  prints '^side$' inside "$at" git branch --show-current
  # What the agent does shows too.
  prints '^?? new$' inside "$at" sh -c 'touch new; git status --porcelain'

  echo '  nothing of it can be written'
  local before after
  before=$(cd .git && find . -type f -exec sha256sum {} + | sort)
  not inside "$at" git commit -qam 'from inside' 2>"$PWD-said"
  grep -q 'Read-only file system' "$PWD-said" || fail "no clear message: $(cat "$PWD-said")"
  not inside "$at" sh -c "echo x >>$PWD/.git/config" 2>/dev/null
  not inside "$at" sh -c "echo x >$PWD/.git/hooks/post-commit" 2>/dev/null
  after=$(cd .git && find . -type f -exec sha256sum {} + | sort)
  same "$before" "$after" 'the git directory'

  echo '  nothing else of the main work tree is there'
  same .git "$(inside "$at" ls -A "$PWD")"
}

submodule() {
  echo '  a submodule'
  git -c protocol.file.allow=always submodule --quiet add "$PWD" sub
  echo changed >sub/README.md
  prints '^ M README.md$' inside "$PWD/sub" git status --porcelain
  prints '^first$' inside "$PWD/sub" git log --format=%s
  same modules "$(inside "$PWD/sub" ls -A "$PWD/.git")"
}

# NAME DIR REASON: the directory that `.git` names is not shown.
refuses() {
  echo "  $1"
  local at=$PWD-claims
  printf 'gitdir: %s\n' "$2" >"$at/.git"
  sl --workspace "$at" run --new -- sh -c "cat $2/canary $2/config; echo RAN" \
    </dev/null >"$PWD-out" 2>&1
  grep -q RAN "$PWD-out" || fail "$1: it did not run: $(cat "$PWD-out")"
  ! grep -q CANARY "$PWD-out" || fail "$1: $(cat "$PWD-out")"
  grep -q "git does not work inside.*$3" "$PWD-out" ||
    fail "$1: no hint: $(cat "$PWD-out")"
}

claims() {
  local at=$PWD-claims keys=$PWD-keys
  mkdir -p "$at" "$keys"
  echo CANARY >"$keys/canary"
  refuses 'a directory that is no git directory' "$keys" 'in turn'
  git init -q --bare "$keys"
  refuses "another's repository" "$keys" 'in turn'
  mkdir -p "$keys/worktrees/x"
  echo ../.. >"$keys/worktrees/x/commondir"
  echo "$PWD/.git" >"$keys/worktrees/x/gitdir"
  refuses "another's work tree" "$keys/worktrees/x" 'in turn'
  # It names the workspace, and has a password.
  git -C "$keys" config core.worktree "$at"
  git -C "$keys" config core.bare false 2>/dev/null
  git -C "$keys" config remote.o.url https://me:CANARY@host/x 2>/dev/null
  refuses 'a credential in its configuration' "$keys" credential
  echo '  without that it is shown'
  git -C "$keys" config --unset remote.o.url 2>/dev/null
  prints CANARY sl --workspace "$at" run --new --quiet -- cat "$keys/canary" </dev/null
}

both() {
  linked
  submodule
  claims
}
both_modes both
