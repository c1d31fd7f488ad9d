#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# ctest: timeout 1500
# Every fuzz target builds with clang 19 and runs a short while from its corpus
# (tests/fuzz/corpus/TARGET, when there is one), always the same inputs: what
# fails here is a change. Other inputs and long runs are scripts/fuzz.
. "$(dirname "$0")/lib.sh" || exit 1
needs clang++-19 ninja cmake
export CCACHE_BASEDIR=$TOP CCACHE_NOHASHDIR=1  # as in scripts/build
mkdir -p "$BUILD/fuzz"
cmake -S "$TOP" -B "$BUILD/fuzz" -G Ninja -DCMAKE_BUILD_TYPE=RelWithDebInfo \
  -DCMAKE_CXX_COMPILER=clang++-19 -DCMAKE_C_COMPILER=clang-19 \
  -DSTOPLOG_FUZZ=ON -DSTOPLOG_SANITIZE=address,undefined >"$T/log" 2>&1 ||
  fail "cannot configure: $(cat "$T/log")"
# Two jobs: it is the longest of all tests.
ninja -C "$BUILD/fuzz" -j2 fuzzers >"$T/log" 2>&1 ||
  fail "cannot build: $(tail -n 40 "$T/log")"

ran=0
for target in "$BUILD"/fuzz/fuzz/*_fuzz; do
  name=${target##*/}
  mkdir "$T/$name"
  corpus=$TOP/tests/fuzz/corpus/$name
  [ -d "$corpus" ] || corpus=
  # Rounds, not seconds: a slow machine does not do less, a fast one not more.
  "$target" -seed=1 -runs=20000 -timeout=60 -rss_limit_mb=1024 \
    -artifact_prefix="$T/$name/crash-" "$T/$name" ${corpus:+"$corpus"} \
    >"$T/log" 2>&1 || {
    tail -n 40 "$T/log"
    for crash in "$T/$name"/crash-*; do base64 "$crash"; done
    fail "$name"
  }
  ran=$((ran + 1))
done
[ "$ran" -gt 0 ] || fail 'no fuzz target'
