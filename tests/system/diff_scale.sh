#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Large drafts through the program itself: memory for many changes, within 256 MB
# for a change of 200 MB and for a line of 4 GB; the cost follows what
# changed and not the tree; progress is told; a pager gets a diff that programs
# such as delta can parse.
# ctest: timeout 900
. "$(dirname "$0")/lib.sh" || exit 1
needs git python3 jq strace
needs_fuse

# STOPLOG_SCALE=100000 measures 100,000 changes instead of reckoning them.
scale=${STOPLOG_SCALE:-12000}

# The memory of a command at its peak, in KB.
peak() {
  python3 - "$@" <<'PY'
import resource, subprocess, sys
code = subprocess.call(sys.argv[1:], stdout=open("/dev/null", "w"), stderr=subprocess.STDOUT)
assert code == 0, (code, sys.argv)
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)
PY
}
within() {
  local mb=$1 used
  shift
  used=$(peak "$@")
  [ "$used" -le $((mb * 1024)) ] || fail "$used KB of memory: $*"
}
make_files() { # make_files PREFIX COUNT, inside
  sl run --quiet -- python3 -c "
import os
for n in range($2):
    if n % 500 == 0:
        os.mkdir(f'$1{n // 500}')
    with open(f'$1{n // 500}/some_file_{n}.c', 'w') as f:
        f.write(f'int number_{n};\n')"
}

workspace

# Memory a change, as a line through two points.
make_files few 2000
declare -A low
for form in 'diff' 'status' 'status --json' 'diff --stat'; do
  # shellcheck disable=SC2086
  low[$form]=$(peak "$STOPLOG" $form)
done
make_files many "$scale"
for form in "${!low[@]}"; do
  # shellcheck disable=SC2086
  high=$(peak "$STOPLOG" $form)
  reckoned=$((low[$form] + (high - low[$form]) * 98000 / scale))
  echo "$form: $high KB for $((scale + 2000)) changes, $reckoned for 100,000"
  # 100,000 measured take 251 MB; a line through smaller numbers is rough.
  [ "$reckoned" -le $((290 * 1024)) ] || fail "$form: too much memory"
done
same $((scale + 2000)) "$(sl diff --name-status | wc -l)" 'changes'
sl discard -y >/dev/null 2>&1

# 200 MB that do not compress: the patch gives the same file.
head -c 100M /dev/urandom >large
git add large && git commit -qm large
sl run --quiet --new -- sh -c 'head -c 100M /dev/urandom >large'
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

# Ten changes cost the same in a small tree and in one of 20,000 files.
calls() {
  sl run --quiet --new -- sh -c 'for i in 0 1 2 3 4 5 6 7 8 9; do echo x >src/n$i; done'
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

# What a pager gets: without colours, git's grammar. git-delta is not packaged
# for Debian 12, so its parser's rules are tested, not the program itself.
printf 'hello\nworld\twith a tab\n' >"$T/new-readme"
sl run --quiet --new -- sh -c 'printf "hello\nworld\n" >README.md; rm src/main.c; chmod +x .gitignore'
python3 - <<'PY' "$STOPLOG" "$T/paged"
import os, pty, subprocess, sys
def child():
    os.environ.update(TERM="xterm", STOPLOG_PAGER=f"cat >'{sys.argv[2]}'")
    os.execv(sys.argv[1], [sys.argv[1], "diff"])
pid, terminal = pty.fork()
if pid == 0:
    child()
while True:
    try:
        if not os.read(terminal, 4096):
            break
    except OSError:
        break
assert os.waitpid(pid, 0)[1] == 0
PY
grep -q $'\033\\[32m' "$T/paged" || fail 'the pager got no colours'
sed 's/\x1b\[[0-9;]*m//g' "$T/paged" >"$T/plain"
same "$(printf '1\t0\tREADME.md\n0\t1\tsrc/main.c\n0\t0\t.gitignore' | sort)" \
  "$(git apply --numstat "$T/plain" | sort)" 'what a pager can parse'
