#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Ctrl-C, SIGTERM and SIGHUP at any instant of any long command leave what
# was before or what the command makes, and nothing half-made.
. "$(dirname "$0")/lib.sh" || exit 1
# ctest: timeout 600
needs python3 strace zstd
needs_fuse

# Every third one: all of them take minutes.
instants() { python3 "$TOP/tests/interrupts.py" "$STOPLOG" "$PWD/at" 3; }
mkdir "$T/w"
cd "$T/w"
instants
