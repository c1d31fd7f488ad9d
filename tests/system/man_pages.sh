#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Every command has a manual page that names its options, and every page builds
# and reads without a warning.
. "$(dirname "$0")/lib.sh" || exit 1
needs scdoc man

mkdir pages
for source in "$TOP"/man/*.scd; do
  page=pages/$(basename "$source" .scd)
  scdoc <"$source" >"$page" || fail "scdoc: $source"
  LC_ALL=C.UTF-8 MANWIDTH=2000 man --warnings=w -E UTF-8 -l "$page" \
    >"$page.txt" 2>warnings || fail "man: $source"
  [ ! -s warnings ] || fail "$source: $(cat warnings)"
  # Unwrapped, so that no name is broken in two.
  [ "$(wc -l <"$page.txt")" -lt 200 ] || fail "$source is too long"
  grep -q '^EXAMPLE' "$page.txt" || fail "$source has no example"
done

commands=$(sl __complete -- '' | tail -n +2 | cut -f1 | grep -v '^-')
[ "$(wc -w <<<"$commands")" -gt 5 ] || fail "commands: $commands"
for command in $commands; do
  page=pages/stoplog-$command.1.txt
  [ -e "$page" ] || fail "no page for $command"
  grep -q "stoplog-$command(1)" pages/stoplog.1.txt ||
    fail "stoplog.1 does not name $command"
  # What is taken, what --help tells and what the page tells are the same.
  taken=$(sl __complete -- "$command" -- | tail -n +2 | cut -f1 |
    grep -vxE -- '--(workspace|draft|color|help|version)' | sort -u || true)
  helped=$(sl "$command" --help | sed 's/git apply --[a-z]*//' |
    grep -oE -- '(^|[ [|])--[a-z][a-z-]+' | tr -d ' [|' | sort -u || true)
  told=$(grep -E '^\*-' "$TOP/man/stoplog-$command.1.scd" |
    grep -oE -- '\*--[a-z][a-z-]+\*' | tr -d '*' | sort -u || true)
  same "$taken" "$helped" "the options of $command and its --help"
  same "$taken" "$told" "the options of $command and its page"
  # Letters, too: "-z, --null" in both.
  letters() { grep -oE -- '-[A-Za-z]\*?, \*?--[a-z][a-z-]*' | tr -d '*' | sort -u; }
  same "$(sl "$command" --help | letters || true)" \
    "$(letters <"$TOP/man/stoplog-$command.1.scd" || true)" "letters of $command"
done

# What a page refers to is there.
for page in pages/*.[15]; do
  for other in $(grep -oE 'stoplog-[a-z]+\([15]\)' "$page.txt" | sort -u); do
    name=${other%(*}
    [ -e "pages/$name.1" ] || fail "$page names $other, which is not there"
  done
done
