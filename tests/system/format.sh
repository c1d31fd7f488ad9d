#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Every source file is as clang-format 19 would write it, opens with its
# licence, and every script passes shellcheck.
. "$(dirname "$0")/lib.sh" || exit 1
needs git
cd "$TOP"
git() { command git -c safe.directory="$TOP" "$@"; }
git rev-parse --git-dir >/dev/null 2>&1 || skip 'not a git work tree'

mapfile -t sources < <(git ls-files '*.h' '*.cc')
[ "${#sources[@]}" -gt 10 ] || fail 'no sources found'
for file in "${sources[@]}"; do
  [ "$(head -n 1 "$file")" = '// SPDX-License-Identifier: Apache-2.0' ] ||
    fail "$file does not open with its licence"
done
mapfile -t headers < <(git ls-files '*.h')
for file in "${headers[@]}"; do
  grep -qx '#pragma once' "$file" || fail "$file lacks #pragma once"
done

needs clang-format-19
clang-format-19 --dry-run --Werror "${sources[@]}" 2>&1 | head -n 40
[ "${PIPESTATUS[0]}" -eq 0 ] || fail 'run clang-format-19 -i on these'

needs shellcheck
mapfile -t scripts < <(git ls-files scripts .ci 'tests/system/*.sh')
for script in "${scripts[@]}"; do
  case $(head -n 1 "$script") in *bash*) ;; *) continue ;; esac
  shellcheck --severity=error -x "$script"
done
