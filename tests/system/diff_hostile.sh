#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A draft that is meant to hurt whoever looks at it: many files, many hunks,
# names that are alike, rules that are slow, deep trees, a git directory full of
# lies. Every form of the list ends, within a bound of memory, and leaves no
# deletion and no danger out. STOPLOG_LONG=1 (scripts/diff-hostile) takes the
# numbers of the long form; names of parts run these alone.
# ctest: timeout 900
. "$(dirname "$0")/lib.sh" || exit 1
needs git python3 jq
needs_fuse

if [ "${STOPLOG_LONG:-}" ]; then
  files=1000000 alike=50000 deep=2000 ignore_files=20000 dense=4096
else
  files=20000 alike=2000 deep=400 ignore_files=1000 dense=64
fi

# Runs a form and keeps what it printed; fails when it, or the daemon, went
# beyond MB of memory.
look() { # look MB OUT ARG...
  local mb=$1 out=$2
  shift 2
  python3 - "$mb" "$out" "$STOPLOG" "$@" <<'PY'
import os, re, resource, subprocess, sys, time
mb, out, *command = sys.argv[1:]
def daemons():
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            if os.path.samefile(f"/proc/{pid}/exe", command[0]):
                status = open(f"/proc/{pid}/status").read()
                yield int(re.search(r"VmHWM:\s*(\d+)", status)[1]) // 1024
        except (OSError, TypeError):
            pass
start = time.time()
code = subprocess.call(command, stdout=open(out, "wb"), stderr=subprocess.STDOUT)
peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss // 1024
daemon = max(daemons(), default=0)
print(f"{' '.join(command[1:])}: {peak} MB, daemon {daemon} MB, "
      f"{time.time() - start:.1f} s, {os.path.getsize(out) >> 10} KB told", flush=True)
if code != 0: sys.exit(f"exit {code}: {open(out, 'rb').read()[-300:]}")
if max(peak, daemon) > int(mb): sys.exit(f"{peak} MB of memory, daemon {daemon} MB")
PY
}
# Every form; each must name all of NAMES.
look_all() { # look_all MB NAMES...
  local mb=$1 name form
  shift
  for form in 'status' 'status --json' 'diff --stat' 'diff --name-status' \
    'diff --color always' 'diff'; do
    # shellcheck disable=SC2086
    look "$mb" "$T/out" $form
    for name; do
      grep -qaF -- "$name" "$T/out" || fail "$form leaves $name out"
    done
  done
}
fresh() { sl discard -y >/dev/null 2>&1 || true; }
within_draft() { sl run --quiet --new --time 30m --disk 20G -- python3 -c "$1"; }

workspace
echo mine >precious

# Hunks without end, a line of each kind of byte, escapes in great number.
part_hunks() {
python3 -c "
open('hunks', 'w').writelines(f'{n % 97}\n' for n in range(180000))
open('short', 'w').writelines('abcdefgh'[n % 7] + '\n' for n in range(1500000))
open('bytes', 'wb').write(bytes(range(256)) * 1000)"
git add -A && git -c user.name=t -c user.email=t@t commit -qm base
git rm -q --cached precious && git -c user.name=t -c user.email=t@t commit -qm out
within_draft "
import os
open('hunks', 'w').writelines(f'{n % 97 if n % 5 else -n}\n' for n in range(180000))
open('short', 'w').writelines('abcdefgh'[n % 7] + '\n' for n in range(1500000) if n % 6)
open('bytes', 'wb').write(bytes(reversed(range(256))) * 1000)
open('bomb', 'w').write('\x1b[2J\x1b]0;x\x07\x9b31m\r' * 100000)
open('notutf', 'wb').write(b'\xff\xfe\xc0\x80\xed\xa0\x80\n' * 50000)
open('one-line', 'w').write('x' * ($dense << 20))
with open('hole', 'wb') as f: f.truncate(1 << 40)
os.remove('precious')
os.makedirs('.vscode'); open('.vscode/tasks.json', 'w').write('{}')"
look_all 256 precious tasks.json hunks short bytes bomb notutf one-line hole
sl diff --color always >"$T/out" 2>/dev/null
LC_ALL=C sed 's/\x1b\[[0-9;]*m//g' "$T/out" >"$T/plain"
LC_ALL=C grep -qaP '[\x00-\x08\x0b-\x1f\x7f]' "$T/plain" &&
  fail 'something reaches the terminal that it would obey'
grep -q 'bytes of this line are not shown' "$T/plain" || fail 'a cut has no mark'
grep -q 'one-line is too large to be shown by lines' "$T/plain" ||
  fail 'what is not shown has no mark'
sl status 2>/dev/null | sed -n 1,2p | grep -q 'precious.*danger deletion' ||
  fail 'the danger is not first'
fresh
}

# Thousands that went and thousands that came, alike in size, in content, in
# name: each is told once, and none is lost.
part_alike() {
python3 -c "
import os
for d in ('same', 'near'): os.mkdir(d)
for n in range($alike):
    open(f'same/{n}', 'w').write('x' * 64)
    open(f'near/{n}', 'w').write('y' * 56 + f'{n:08}')"
within_draft "
import os, shutil
for d in ('same', 'near'):
    for n in range($alike): os.remove(f'{d}/{n}')
os.mkdir('copy')
for n in range($alike):
    open(f'copy/same{n}', 'w').write('x' * 64)
    open(f'copy/near{n}', 'w').write('y' * 56 + f'{n + 1:08}')"
look 512 "$T/out" status --json
same $((4 * alike - (alike - 1))) "$(jq '.changes | length' "$T/out")" 'rows'
same $((alike - 1)) \
  "$(jq '[.changes[] | select(.kind == "renamed")] | length' "$T/out")" 'renames'
look 512 "$T/out" diff
fresh
rm -rf same near
}

# Rules of a megabyte, made to be slow, over names made for them.
part_rules() {
python3 -c "
rules = ['**/*a*a*a*a*a*a*b', '*[a-z]*[a-z]*[a-z]*q', 'x/**/y/**/z/**/w', '*.o', 'made/']
while sum(map(len, rules)) < 990000: rules.append(f'/dir{len(rules)}/**/*a*a*b')
open('.gitignore', 'w').write('\n'.join(rules) + '\n')"
git add .gitignore && git -c user.name=t -c user.email=t@t commit -qm rules
mkdir made && echo keep >made/kept
within_draft "
import os
os.makedirs('x/y/z/y/z')
for n in range($ignore_files): open('x/y/z/y/z/' + 'a' * 200 + str(n), 'w').write('1')
open('made/n', 'w').write('1'); os.remove('made/kept'); open('a.o', 'w').write('1')"
look 512 "$T/out" status --json
same $((ignore_files + 1)) "$(jq '.changes | length' "$T/out")" 'rows'
same 'made/kept deleted' "$(jq -r '.changes[] | select(.ignored) |
  .path + " " + .kind' "$T/out")" 'the ignored one that is gone'
same 'a.o 1 made/ 2' "$(jq -r '[.groups[] | "\(.path) \(.files)"] |
  join(" ")' "$T/out")" 'groups'
fresh
git rm -q --cached .gitignore && rm .gitignore && git -c user.name=t \
  -c user.email=t@t commit -qm 'no rules'
}

# Deep and wide.
part_deep() {
within_draft "
import os
d = '.'
for n in range($deep):
    os.mkdir('d' * 100); os.chdir('d' * 100)
open('leaf', 'w').write('{\"scripts\":{\"postinstall\":\"x\"}}')
os.rename('leaf', 'package.json')"
look 512 "$T/out" status --json
same 'danger' "$(jq -r '.changes[0].risks[0].level' "$T/out")" 'the deep danger'
look 512 "$T/out" diff
fresh
# Deeper than any program can name: what lies there is counted, and stays held.
# It costs no more for being deeper, and hides nothing else.
deepest() { # deepest LEVELS BYTES
  within_draft "
import os
for n in range(40): open(f'beside{n}', 'w').write('1')
os.remove('precious')
for n in range($1):
    os.mkdir('d' * $2); os.chdir('d' * $2)
open('package.json', 'w').write('{\"scripts\":{\"postinstall\":\"x\"}}')"
}
deepest 100 250
look 96 "$T/few" status
fresh
deepest $((deep * 5)) 250
for form in 'status' 'status --json' 'diff --stat' 'diff --name-status' 'diff'; do
  # shellcheck disable=SC2086
  look 96 "$T/out" $form
  for name in precious beside39; do
    grep -q "$name" "$T/out" || fail "$form leaves $name out"
  done
done
look 96 "$T/out" status
same "$(wc -l <"$T/few")" "$(wc -l <"$T/out")" 'rows'
grep -q 'danger too-deep' "$T/out" || fail 'what is not shown has no mark'
sl diff 2>"$T/out" >/dev/null
grep -q 'too deep to be shown' "$T/out" ||
  fail 'the patch does not say what it lacks'
exits 4 sl commit -a -y >"$T/out" 2>&1
sl rollback >/dev/null 2>&1 || fail 'there is no way back'
same '[]' "$(sl status --json | jq -c .changes)" 'the way back'
fresh
deepest $((deep * 5)) 250
sl approve --all >/dev/null 2>&1 && sl commit -y >"$T/out" 2>&1
[ -e beside39 ] || fail 'the rest of the draft cannot be committed'
sl approve --all --danger >/dev/null 2>&1
sl commit -y >"$T/out" 2>&1 || fail "$(head -c 300 "$T/out")"
[ ! -e precious ] || fail 'the danger cannot be committed'
sl status >"$T/out"
grep -q 'danger too-deep' "$T/out" || fail 'what was too deep is not held any more'
rm -rf beside* dddd* && echo mine >precious
fresh
# Wide where it is deep: more bytes of paths than changes can account for.
within_draft "
import os
for n in range(60):
    os.mkdir('d' * 250); os.chdir('d' * 250)
for n in range(6000): open(f'{n}', 'w').close()"
for form in 'status' 'diff' 'commit -a -y'; do
  # shellcheck disable=SC2086
  not sl $form >"$T/out" 2>&1
  grep -q 'directories in directories' "$T/out" || fail "$form: $(head -c 300 "$T/out")"
done
sl rollback >/dev/null 2>&1 || fail 'there is no way back'
same '[]' "$(sl status --json | jq -c .changes)" 'the way back'
within_draft "
open('package.json', 'w').write('{\"scripts\":{\"postinstall\":' + '[' * 100000 + ']' * 100000 + '}}')
open('tsconfig.json', 'w').write('[' * 1000000)"
look_all 256 package.json tsconfig.json
sl status --json | jq -e '.changes[] | select(.path == "package.json") |
  .risks[] | select(.level == "danger")' >/dev/null || fail 'the hook is not told'
fresh
}

# A git directory of lies.
part_lies() {
within_draft "
import os, struct
open('.git/index', 'wb').write(b'DIRC' + struct.pack('>II', 4, 0xffffffff) + b'\0' * 100000)
open('.git/packed-refs', 'w').write('x' * 1000000)
os.makedirs('.git/refs/heads/o', exist_ok=True)
for name in (b'\x1b[2J', b'a\nb', b'\xff', b'..x', b'@{', b'a' * 250):
    open(b'.git/refs/heads/o/' + name, 'wb').write(b'1' * 40 + b'\n')
os.makedirs('.git/objects/pack', exist_ok=True)
for n in range(300):
    name = f'.git/objects/pack/pack-{n:040}'
    open(name + '.pack', 'wb').write(b'PACK' + struct.pack('>II', 2, 0xffffffff))
    open(name + '.idx', 'wb').write(b'\377tOc' + struct.pack('>I', 2) + b'\377' * 1024)
open('.git/HEAD', 'wb').write(b'ref: refs/heads/' + b'z' * 100000)
os.makedirs('.git/hooks', exist_ok=True)
open('.git/hooks/post-checkout', 'w').write('x')"
look 256 "$T/out" status
grep -q 'danger git-hook' "$T/out" || fail 'the hook is not told'
grep -q 'git-unreadable.*the index is damaged' "$T/out" || fail 'a lie is believed'
LC_ALL=C grep -qaP '[\x00-\x08\x0b-\x1f\x7f]' "$T/out" && fail 'a raw name'
look 256 "$T/out" status --json
jq -e '.changes[] | select(.path == ".git/") | .git.packs_added == 300' \
  "$T/out" >/dev/null || fail 'packs are not counted'
fresh
}

# Many tiny files: memory grows with their number and nothing else.
part_many() {
within_draft "
import os
for n in range($files):
    if n % 1000 == 0: os.mkdir(f'm{n // 1000}')
    open(f'm{n // 1000}/{n}', 'w').write('1')
os.remove('precious')"
limit=$((256 + files * 3 / 1024))
look "$limit" "$T/out" status
head -1 "$T/out" | grep -q 'precious.*danger deletion' || fail 'the danger is not first'
look "$limit" "$T/out" diff --name-status
same $((files + 1)) "$(grep -c . "$T/out")" 'names'
look "$limit" "$T/out" diff
same $((files + 1)) "$(grep -c '^diff --git' "$T/out")" 'files in the patch'
fresh
}

[ $# -gt 0 ] || set -- hunks alike rules deep lies many
for part; do
  echo "--- $part"
  "part_$part"
done
