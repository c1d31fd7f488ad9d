#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Ctrl-C at every instant that leaves a trace on disk.

    interrupts.py STOPLOG PLACE [EVERY [CASE...]]

Each long command is run again and again, and the signal comes at its 1st, 2nd,
3rd ... call that changes a file or asks the daemon, or at each EVERY-th (strace
injects it at the entry of that call), until one run ends before its signal. Whatever the instant:
the command ended by that very signal or had done its work; nothing half-made is
left in the state directory, beside an export or in the real tree; the draft is
what it was before or what the command makes of it; and its record verifies.
"""
import glob
import hashlib
import json
import os
import shutil
import signal
import subprocess
import sys
import time

PROGRAM, PLACE = sys.argv[1], sys.argv[2]
EVERY = int(sys.argv[3]) if len(sys.argv) > 3 else 1
WORK, OUT = PLACE + '/w', PLACE + '/out'
STATE = os.environ['XDG_STATE_HOME'] + '/stoplog'
CALLS = ('mkdirat,openat,renameat2,linkat,unlinkat,pwrite64,write,ftruncate,'
         'fsync,fdatasync,syncfs,sendmsg,sendto,symlinkat,fchmod,utimensat')
SIGNALS = [signal.SIGINT, signal.SIGINT, signal.SIGTERM, signal.SIGHUP]


def sl(*args, ok=(0,)):
    p = subprocess.run([PROGRAM, *args], cwd=WORK, capture_output=True)
    if p.returncode not in ok:
        sys.exit(f'exit {p.returncode}: {args}: {p.stderr.decode()}')
    return p.stdout.decode()


def tree(top):
    """What a directory holds, as text; git's own files apart."""
    out = []
    for here, dirs, files in os.walk(top):
        dirs[:] = sorted(d for d in dirs if d != '.git')
        for name in sorted(files + dirs):
            path = os.path.join(here, name)
            what = os.readlink(path) if os.path.islink(path) else \
                'dir' if os.path.isdir(path) else \
                hashlib.sha256(open(path, 'rb').read()).hexdigest()
            out.append(f'{os.path.relpath(path, top)} {what}')
    return '\n'.join(out)


def drafts():
    return json.loads(sl('drafts', '--json'))['drafts']


def debris():
    found = [p for p in glob.glob(STATE + '/**', recursive=True,
                                  include_hidden=True)
             if os.path.basename(p).startswith(('new-', 'tmp-', '.stoplog-'))
             or p.endswith(('.tmp', '.new')) or '/pending/' in p.rstrip('/')]
    found += glob.glob(WORK + '/**/.stoplog-*', recursive=True,
                       include_hidden=True)
    found += glob.glob(OUT + '/.*')
    for d in os.listdir(STATE + '/drafts'):
        if not os.path.exists(f'{STATE}/drafts/{d}/draft.json'):
            found.append('drafts/' + d)
    return found


def entries(draft):
    with open(f'{STATE}/drafts/{draft["id"]}/ledger.jsonl') as f:
        return [e for e in map(json.loads, f) if e['kind'] != 'approve']


def snapshot():
    """All that a command may change."""
    held = []
    for d in drafts():
        sl('-d', d['name'], 'log', '--verify')
        status = json.loads(sl('-d', d['name'], 'status', '--json', ok=(0, 2)))
        kinds = [e['kind'] + ' ' + str(e.get('mark') or e.get('to') or '')
                 for e in entries(d)]
        held.append((d['name'], d['state'], status['digest'], kinds))
    for path in os.listdir(OUT):
        if path == 'x':
            subprocess.run(['zstd', '-tq', f'{OUT}/x'], check=True)
    return {'real': tree(WORK), 'held': held, 'out': os.listdir(OUT)}


def end_daemons():
    for d in drafts():
        if d['daemon']:
            os.kill(d['daemon'], signal.SIGTERM)
            while os.path.exists(f'/proc/{d["daemon"]}'):
                time.sleep(0.01)


class Case:
    """make() brings the state in which `command` can be run; `live`: with the
    draft's daemon."""

    def __init__(self, name, command, make, live=False):
        self.name, self.command, self.live = name, command, live
        self.make = make

    def begin(self):
        for d in drafts():
            sl('rm', '-y', d['name'])
        # What earlier commits keep would make each run longer than the last.
        for path in ('commits', 'objects'):
            shutil.rmtree(f'{STATE}/{path}', ignore_errors=True)
        for path in glob.glob(OUT + '/*'):
            os.unlink(path)
        subprocess.run('git checkout -q . && git clean -qfd', shell=True,
                       cwd=WORK, check=True)
        self.make()
        if not self.live:
            end_daemons()

    def run(self, number, at):
        """True: the signal came before it was done."""
        p = subprocess.run(
            ['strace', '-f', '-qq', '-o', '/dev/null', '-e', 'trace=' + CALLS,
             '-e', f'inject={CALLS}:signal={int(number)}:when={at}',
             PROGRAM, *self.command],
            cwd=WORK, capture_output=True)
        self.said = p.stderr.decode()
        if p.returncode not in (0, -number, 128 + number):
            sys.exit(f'{self.name}, {number.name} at {at}: exit '
                     f'{p.returncode}: {self.said}')
        return p.returncode != 0

    def settled(self, allowed):
        """The daemon finishes what its client left."""
        end = time.monotonic() + 30
        while True:
            now = snapshot()
            if now in allowed or time.monotonic() > end:
                return now
            time.sleep(0.05)

    def test(self):
        self.begin()
        before = snapshot()
        sl(*self.command)
        after = snapshot()
        ended = at = turn = 0
        self.begin()
        while True:
            at, turn = at + EVERY, turn + 1
            number = SIGNALS[turn % len(SIGNALS)]
            interrupted = self.run(number, at)
            where = f'{self.name}, {number.name} at call {at}'
            if left := debris():
                sys.exit(f'{where}: left behind: {left}; it said: {self.said}')
            now = self.settled((before, after))
            if now != before and now != after:
                sys.exit(f'{where}: neither before nor after:\n{now}\nbefore:'
                         f'\n{before}\nafter:\n{after}')
            if not interrupted:
                if now != after:
                    sys.exit(f'{where}: exit 0, but it was not done')
                break
            ended += 1
            if now == after or self.live:
                self.begin()
        if ended < 3:
            sys.exit(f'{self.name}: interrupted {ended} times only')
        print(f'{self.name}: {ended} instants')


def held():
    sl('-d', 'main', 'run', '--quiet', '--', 'sh', '-c',
       'echo new >new; echo more >>README.md; mkdir d; echo a >d/a; rm src/b')
    sl('run', '--quiet', '--', 'sh', '-c', 'echo 2 >>new; ln -s x link; rm d/a')


def committed():
    held()
    sl('approve', 'README.md', 'src/b')
    sl('commit')


def discarded():
    held()
    sl('discard', '-y')


def exported():
    held()
    sl('export', PLACE + '/bundle')
    end_daemons()
    sl('rm', '-y', 'main')


def main():
    os.makedirs(WORK + '/src')
    os.makedirs(OUT)
    for name in ('README.md', 'src/a', 'src/b'):
        with open(f'{WORK}/{name}', 'w') as f:
            f.write(name + '\n')
    subprocess.run('git init -q . && git add -A && git commit -qm x',
                   shell=True, cwd=WORK, check=True)
    name = ['fork', 'other']
    cases = [
        Case('fork', name, held), Case('fork, live', name, held, True),
        Case('fork of a mark', ['fork', 'other', '@2'], held),
        Case('rollback', ['rollback', '@2'], held),
        Case('rollback, live', ['rollback', '@2'], held, True),
        Case('rollback past a commit', ['rollback', '@1'], committed),
        Case('snapshot', ['snapshot', '-m', 's'], held),
        Case('snapshot, live', ['snapshot', '-m', 's'], held, True),
        Case('export', ['export', OUT + '/x'], held),
        Case('export --patch', ['export', '--patch', OUT + '/p'], held),
        Case('import', ['import', PLACE + '/bundle'], exported),
        Case('gc', ['gc'], discarded), Case('gc, live', ['gc'], held, True),
        Case('commit', ['commit', '-a', '-y'], held),
        Case('commit, live', ['commit', '-a', '-y'], held, True),
        Case('undo', ['undo'], committed),
        Case('discard', ['discard', '-y'], held),
        Case('discard a path', ['discard', '-y', 'new', 'd'], held),
        Case('status', ['status'], held), Case('diff', ['diff'], held),
        Case('rm', ['rm', '-y', 'main'], held),
    ]
    wanted = sys.argv[4:]
    for case in cases:
        if not wanted or case.name in wanted:
            case.test()


main()
