#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# scripts/setup on machines that we do not have: with nothing to do, without
# network, without root and sudo, on another distribution. apt-get, dpkg-query,
# sudo and id are played by small programs that write down what they were asked.
# shellcheck disable=SC2016
. "$(dirname "$0")/lib.sh" || exit 1

real_path=$PATH
fake="$T/fake"
mkdir "$fake"
for tool in bash sh env cat sed awk mktemp rm tail dirname printf grep; do
  ln -s "$(PATH=$real_path command -v "$tool")" "$fake/$tool"
done
play() {
  printf '#!/bin/bash\n%s\n' "$2" >"$fake/$1"
  chmod +x "$fake/$1"
}
setup() {
  code=0
  : >"$T/asked"
  T=$T PATH=$fake bash "$TOP/scripts/setup" "$@" >"$T/out" 2>"$T/err" </dev/null ||
    code=$?
}
said() { grep -q "$1" "$T/err" || fail "did not say «$1» but: $(cat "$T/err")"; }
asked() { grep -q "$1" "$T/asked" || fail "apt-get was asked: $(cat "$T/asked")"; }

all=$(bash "$TOP/scripts/setup" --list | awk '{ print $1 }')
same 0 "$(bash "$TOP/scripts/setup" --list | grep -cv '| *[a-z]* *| .' || true)" \
  'packages without a reason'

installed() { play dpkg-query "for p in $1; do echo \"installed \$p\"; done"; }
play apt-get 'echo "$*" >>"$T/asked"'
play id 'echo 0'

# Nothing to do: silent, and apt-get is not even started.
installed "$(echo "$all" | tr '\n' ' ')"
setup
same 0 "$code"
same '' "$(cat "$T/out" "$T/err" "$T/asked")"

# Two missing: named with their reasons, fetched first, then installed.
installed "$(echo "$all" | grep -vE '^(libfuse3-dev|catch2)$' | tr '\n' ' ')"
setup
same 0 "$code"
said 'libfuse3-dev  *the workspace mount'
said 'catch2  *unit tests'
asked 'download-only install .*libfuse3-dev'
asked 'no-download install .*catch2'
same 2 "$(wc -l <"$T/asked")" 'calls of apt-get'

# --build leaves the tests' packages out.
setup --build
same 0 "$code"
not grep -q catch2 "$T/asked"

# No network: nothing is installed, and it says so.
play apt-get 'echo "$*" >>"$T/asked"
case $* in *download-only*|*update*) echo "E: Could not resolve host" >&2; exit 100 ;; esac'
setup
same 5 "$code"
said 'cannot download the packages; nothing was installed'
said 'Could not resolve'
not grep -q no-download "$T/asked"

# Old lists: they are refreshed, then it works.
play apt-get 'echo "$*" >>"$T/asked"
case $* in *update*) : >"$T/fresh" ;; *download-only*) [ -e "$T/fresh" ] ;; esac'
setup
same 0 "$code"

# Neither root nor sudo.
play id 'echo 1000'
play apt-get 'echo "$*" >>"$T/asked"'
setup
same 5 "$code"
said 'neither root nor sudo'
said 'hint: as root: apt-get install libfuse3-dev catch2'
same '' "$(cat "$T/asked")"

# sudo that would ask, and no terminal to ask on.
play sudo 'exit 1'
setup
same 5 "$code"
said 'no terminal'

# sudo that works is used.
play sudo 'case $1 in -n) exit 0 ;; esac; echo "sudo $1" >>"$T/asked"; exec "$@"'
setup
same 0 "$code"
asked '^sudo env'

# Another distribution: what to install, and why.
rm "$fake/apt-get" "$fake/dpkg-query" "$fake/sudo"
setup
same 5 "$code"
said 'not Debian or Ubuntu'
said 'libseccomp-dev  *the system call filter'

setup --nonsense
same 2 "$code"
