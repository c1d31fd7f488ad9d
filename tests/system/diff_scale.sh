#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Large drafts through the program itself: 100,000 changes, a change of 200 MB
# and a line of 4 GB within 256 MB, of the command and of the daemon; the cost
# follows what changed and not the tree; progress is told.
# ctest: timeout 900
. "$(dirname "$0")/lib.sh" || exit 1
needs git python3 jq strace
needs_fuse

# The memory of a command at its peak, and that of the daemon that it asked.
within() { # within MB COMMAND...
  python3 - "$STOPLOG" "$@" <<'PY'
import os, re, resource, subprocess, sys
program, mb, *command = sys.argv[1:]
def daemons():
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            if os.path.samefile(f"/proc/{pid}/exe", program):
                status = open(f"/proc/{pid}/status").read()
                yield int(re.search(r"VmHWM:\s*(\d+)", status)[1]) // 1024
        except (OSError, TypeError):
            pass
code = subprocess.call(command, stdout=open("/dev/null", "w"), stderr=subprocess.STDOUT)
peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss // 1024
daemon = max(daemons(), default=0)
print(f"{' '.join(command[1:])}: {peak} MB, daemon {daemon} MB", flush=True)
assert code == 0, (code, command)
assert daemon > 0 and max(peak, daemon) <= int(mb), "too much memory"
PY
}

workspace

# 100,000 changes.
sl run --quiet -- python3 -c "
import os
for n in range(100000):
    if n % 500 == 0:
        os.mkdir(f'many{n // 500}')
    with open(f'many{n // 500}/some_file_{n}.c', 'w') as f:
        f.write(f'int number_{n};\n')"
for form in 'diff' 'status' 'status --json' 'diff --stat'; do
  # shellcheck disable=SC2086
  within 256 "$STOPLOG" $form
done
same 100000 "$(sl diff --name-status | wc -l)" 'changes'
same 100000 "$(sl diff | grep -c '^diff --git')" 'in the patch'
sl discard -y >/dev/null 2>&1

# 200 MB that do not compress: the patch gives the same file.
head -c 10M /dev/urandom >large
git add large && git commit -qm large
sl run --quiet --new -- sh -c 'head -c 200M /dev/urandom >large'
within 256 "$STOPLOG" diff
sl diff >"$T/patch"
cp large "$T/old-large"
git apply --binary "$T/patch"
cmp large <(sl cat large) || fail 'the patch does not give the file'
cp "$T/old-large" large
rm "$T/patch" "$T/old-large"
sl discard -y >/dev/null 2>&1

# A line of 4 GB, and what stands beside it.
sl run --quiet --new -- sh -c '
  truncate -s 4G line; printf a >>line; printf a | dd of=line conv=notrunc 2>/dev/null
  rm README.md; mkdir .vscode; echo {} >.vscode/tasks.json'
for form in 'status' 'status --json' 'diff --stat' 'diff --name-status' \
  'diff --color always'; do
  # shellcheck disable=SC2086
  within 256 "$STOPLOG" $form
  # shellcheck disable=SC2086
  sl $form >"$T/out" 2>&1
  for name in line README.md tasks.json; do
    grep -q "$name" "$T/out" || fail "$form leaves $name out"
  done
done
grep -q 'too large to be shown by lines' "$T/out" || fail 'nothing says so'
within 256 "$STOPLOG" diff
sl diff 2>"$T/said" >"$T/out"
grep -q "'line' has more than" "$T/said" || fail 'nothing says what is missing'
grep -q '^deleted file mode' "$T/out" || fail 'the deletion is not in the patch'
sl discard -y >/dev/null 2>&1

# Ten changes cost the same in a small tree and in one of 20,000 files, which
# git tracks.
calls() {
  sl run --quiet --new -- sh -c '
    for i in 0 1 2 3 4 5 6 7; do echo x >src/n$i; done; rm README.md; echo y >src/main.c'
  strace -f -o "$T/trace" "$STOPLOG" status >/dev/null 2>&1
  # Without what depends on timing and on the allocator.
  grep -vcE ' (brk|mmap|munmap|mprotect|madvise|futex|rt_|clone|exit|<\.\.\.|---|\+\+\+|set_robust|rseq|recvmsg|ppoll)' "$T/trace"
  sl discard -y >/dev/null 2>&1
}
small=$(calls)
python3 -c "
import os
for n in range(20000):
    if n % 500 == 0:
        os.mkdir(f't{n // 500}')
    open(f't{n // 500}/{n}', 'w').close()"
git add -A && git commit -qm large
large=$(calls)
[ "$large" -le $((small + 20)) ] ||
  fail "$small system calls in a small tree, $large in a large one"

# Progress on a terminal (each read delayed, so that it takes a while), and none
# where stderr is no terminal.
sl run --quiet --new -- sh -c 'for i in $(seq 400); do echo $i >n$i; done'
slow() { strace -f -o /dev/null -e trace=pread64 -e inject=pread64:delay_exit=4000 "$@"; }
python3 - <<'PY' "$STOPLOG" "$T/patch"
import os, pty, subprocess, sys
terminal, other = pty.openpty()
with open(sys.argv[2], "wb") as out:
    program = subprocess.Popen(
        ["strace", "-f", "-o", "/dev/null", "-e", "trace=pread64", "-e",
         "inject=pread64:delay_exit=4000", sys.argv[1], "diff"],
        stdout=out, stderr=other, env={**os.environ, "TERM": "xterm"})
os.close(other)
said = b""
while True:
    try:
        piece = os.read(terminal, 4096)
    except OSError:
        break
    if not piece:
        break
    said += piece
assert program.wait() == 0
assert b" of 400 (" in said, said
assert said.endswith(b"\r\x1b[K"), said[-100:]
PY
same 400 "$(grep -c '^diff --git' "$T/patch")"
slow "$STOPLOG" diff 2>"$T/said" >/dev/null
[ ! -s "$T/said" ] || fail "$(cat "$T/said")"
